"""State the end paddings of poolings that round their sizes up: a window that would start in them is not a window.

    ceil_mode, 6 elements, windows of 1 every 3:    0 . . 3 . . |6|        two results, not three

So do ONNX Runtime, PyTorch and ONNX from set 22 on; ONNX's inference for older sets counts that window, and so does TVM.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ..graph_context import NodeView, apply_rules
from ..node_builder import NodeBuilder, splice
from ..read_onnx import refuse
from .auto_pad import SAME, same_pads

if TYPE_CHECKING:
    import onnx

_POOLINGS = ("AveragePool", "LpPool", "MaxPool")


class _Axis(NamedTuple):
    """Windows along an axis: padding after it as given, that which its last window needs, whether one is dropped."""

    given: int
    needed: int
    drops: bool


def state_pooled_ends(model: onnx.ModelProto) -> bool:
    """Rewrite, in place, the poolings of known operands whose last window would start in padding; tell whether there were any."""
    made = apply_rules(model, dict.fromkeys(_POOLINGS, _state_ends))
    splice(model.graph, made)
    return bool(made)


def _state_ends(node: NodeView, build: NodeBuilder) -> None:
    shape, automatic = node.shape(0), node.get("auto_pad") in SAME
    if shape is None or (not automatic and _widen(node, shape, build)) or not node.get("ceil_mode"):
        return
    if not automatic:
        _state(node, shape, build)
    elif any(dilation > 1 for dilation in node.get("dilations", ())):
        # such paddings are of windows without dilations, and leave a rest to be rounded up
        pads = same_pads(node.attributes, shape)
        if min(pads[: len(pads) // 2]) >= 0:
            _set(node, {**node.attributes, "pads": [max(each, 0) for each in pads], "auto_pad": "NOTSET"}, build)


def _widen(node: NodeView, shape: tuple[int, ...], build: NodeBuilder) -> bool:
    """Pad the end of data that are smaller than a window, but by less than a stride: ONNX Runtime rounds toward one window."""
    rank = len(shape) - 2
    given = _pads(node, rank)
    pads = list(given)
    strides, dilations = (node.get(name) or [1] * rank for name in ("strides", "dilations"))
    for axis, (kernel, dilation) in enumerate(zip(node.attributes["kernel_shape"], dilations, strict=True)):
        missing = (kernel - 1) * dilation + 1 - shape[2 + axis] - pads[axis] - pads[rank + axis]
        if 0 < missing < strides[axis]:
            if node.get("count_include_pad"):
                what = "cannot be compiled: it counts padding, and its windows are larger than the padded data"
                refuse(node.proto, what, "Export the model with a kernel that fits the data.")
            pads[rank + axis] += missing
    if pads != given:
        _set(node, {**node.attributes, "auto_pad": "NOTSET", "pads": pads}, build)
    return pads != given


def _set(node: NodeView, attributes: dict[str, Any], build: NodeBuilder) -> None:
    from onnx import helper

    copied = build.copy(node.proto)
    del copied.attribute[:]
    copied.attribute.extend(helper.make_attribute(name, value) for name, value in attributes.items())


def _state(node: NodeView, shape: tuple[int, ...], build: NodeBuilder) -> None:
    axes = _axes(node, shape)
    if not any(axis.drops for axis in axes):
        return
    kept = {name: value for name, value in node.attributes.items() if name not in ("auto_pad", "ceil_mode", "pads")}
    if any(axis.needed > axis.given for axis in axes) and node.get("count_include_pad"):
        # elements past the padding do not count, so that windows there still have to round up
        if any(axis.drops and axis.needed < 0 for axis in axes):
            what = "cannot be compiled: it counts padding, and rounds up along one axis, but not along another"
            refuse(node.proto, what, "Export the model with ceil_mode=0 and explicit pads.")
        kept["ceil_mode"] = 1
        ends = [axis.needed if axis.drops else axis.given for axis in axes]
    else:
        ends = [max(axis.needed, 0) for axis in axes]
    kept["pads"] = [*_pads(node, len(axes))[: len(axes)], *ends]
    _set(node, kept, build)


def _axes(node: NodeView, shape: tuple[int, ...]) -> list[_Axis]:
    rank = len(shape) - 2
    ones, pads = [1] * rank, _pads(node, rank)
    strides, dilations = (node.get(name) or ones for name in ("strides", "dilations"))
    found = []
    for size, kernel, stride, dilation, begin, end in zip(
        shape[2:], node.attributes["kernel_shape"], strides, dilations, pads[:rank], pads[rank:], strict=True
    ):
        reach = (kernel - 1) * dilation + 1
        last = -(-(size + begin + end - reach) // stride)
        drops = last * stride >= size + begin
        found.append(_Axis(end, (last - drops) * stride + reach - size - begin, drops))
    return found


def _pads(node: NodeView, rank: int) -> list[int]:
    return list(node.get("pads") or [0] * 2 * rank)
