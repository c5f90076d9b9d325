"""State the end paddings of poolings that round their sizes up: a window that would start in them is not a window.

    ceil_mode, 6 elements, windows of 1 every 3:    0 . . 3 . . |6|        two results, not three

So do ONNX Runtime, PyTorch and ONNX from set 22 on; ONNX's inference for older sets counts that window, and so does TVM.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ....errors import ModelError
from ..node_builder import attributes_of
from ..read_onnx import node_title
from ..shapes import static_shape, value_types
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
    types, changed = value_types(model.graph), False
    for node in model.graph.node:
        if node.op_type in _POOLINGS and node.input[0] in types:
            shape, attributes = static_shape(types[node.input[0]]), attributes_of(node)
            if shape is None:
                continue
            if attributes.get("auto_pad") not in SAME and _widen(node, attributes, shape):
                changed = True
                continue
            if not attributes.get("ceil_mode"):
                continue
            if attributes.get("auto_pad") not in SAME:
                changed |= _state(node, attributes, shape)
            elif any(dilation > 1 for dilation in attributes.get("dilations", ())):
                # such paddings are of windows without dilations, and leave a rest to be rounded up
                pads = same_pads(attributes, shape)
                if min(pads[: len(pads) // 2]) >= 0:
                    _set(node, {**attributes, "pads": [max(each, 0) for each in pads], "auto_pad": "NOTSET"})
                    changed = True
    return changed


def _widen(node: onnx.NodeProto, attributes: dict[str, Any], shape: tuple[int, ...]) -> bool:
    """Pad the end of data that are smaller than a window, but by less than a stride: ONNX Runtime rounds toward one window."""
    rank = len(shape) - 2
    given = _pads(attributes, rank)
    pads = list(given)
    strides, dilations = (attributes.get(name) or [1] * rank for name in ("strides", "dilations"))
    for axis, (kernel, dilation) in enumerate(zip(attributes["kernel_shape"], dilations, strict=True)):
        missing = (kernel - 1) * dilation + 1 - shape[2 + axis] - pads[axis] - pads[rank + axis]
        if 0 < missing < strides[axis]:
            if attributes.get("count_include_pad"):
                raise ModelError(
                    f"The {node_title(node)} cannot be compiled: it counts padding, and its windows are larger than the padded data.",
                    "Export the model with a kernel that fits the data.",
                )
            pads[rank + axis] += missing
    if pads == given:
        return False
    _set(node, {**attributes, "auto_pad": "NOTSET", "pads": pads})
    return True


def _set(node: onnx.NodeProto, attributes: dict[str, Any]) -> None:
    from onnx import helper

    del node.attribute[:]
    node.attribute.extend(helper.make_attribute(name, value) for name, value in attributes.items())


def _state(node: onnx.NodeProto, attributes: dict[str, Any], shape: tuple[int, ...]) -> bool:
    axes = _axes(attributes, shape)
    if not any(axis.drops for axis in axes):
        return False
    kept = {name: value for name, value in attributes.items() if name not in ("auto_pad", "ceil_mode", "pads")}
    if any(axis.needed > axis.given for axis in axes) and attributes.get("count_include_pad"):
        # elements past the padding do not count, so that windows there still have to round up
        if any(axis.drops and axis.needed < 0 for axis in axes):
            raise ModelError(
                f"The {node_title(node)} cannot be compiled: it counts padding, and rounds up along one axis, but not along another.",
                "Export the model with ceil_mode=0 and explicit pads.",
            )
        kept["ceil_mode"] = 1
        ends = [axis.needed if axis.drops else axis.given for axis in axes]
    else:
        ends = [max(axis.needed, 0) for axis in axes]
    kept["pads"] = [*_pads(attributes, len(axes))[: len(axes)], *ends]
    _set(node, kept)
    return True


def _axes(attributes: dict[str, Any], shape: tuple[int, ...]) -> list[_Axis]:
    rank = len(shape) - 2
    ones, pads = [1] * rank, _pads(attributes, rank)
    strides, dilations = (attributes.get(name) or ones for name in ("strides", "dilations"))
    found = []
    for size, kernel, stride, dilation, begin, end in zip(
        shape[2:], attributes["kernel_shape"], strides, dilations, pads[:rank], pads[rank:], strict=True
    ):
        reach = (kernel - 1) * dilation + 1
        last = -(-(size + begin + end - reach) // stride)
        drops = last * stride >= size + begin
        found.append(_Axis(end, (last - drops) * stride + reach - size - begin, drops))
    return found


def _pads(attributes: dict[str, Any], rank: int) -> list[int]:
    return list(attributes.get("pads") or [0] * 2 * rank)
