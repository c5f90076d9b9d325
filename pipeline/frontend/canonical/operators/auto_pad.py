"""State the paddings and kernel shapes that TVM's importer derives wrongly from `auto_pad`, or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..node_builder import NodeBuilder

if TYPE_CHECKING:
    from ..graph_context import NodeView

SAME = ("SAME_LOWER", "SAME_UPPER")


def pooling_pads(node: NodeView, build: NodeBuilder) -> None:
    """Give a pooling its paddings: as many results as input size ÷ stride, rounded up.

    TVM rounds down for SAME_LOWER. Dilations do not count, as in ONNX Runtime: a dilated pooling has fewer results.
    Where strides exceed the kernel by two or more, the first window begins inside: elements before it are cut off.
    """
    shape = node.shape(0)
    if node.get("auto_pad") not in SAME or shape is None:
        return
    pads, rank = same_pads(node.attributes, shape), len(shape) - 2
    kept = {name: value for name, value in node.attributes.items() if name not in ("auto_pad", "ceil_mode")}
    cut = [axis for axis in range(rank) if pads[axis] < 0]
    inputs = list(node.input)
    if cut and any(
        node.output[1:]
    ):  # indices count all elements: their kernel begins inside (relax/operators/pool_kernel.py)
        return
    if cut:
        starts = [-pads[axis] for axis in cut]
        ends, axes = [shape[2 + axis] for axis in cut], [2 + axis for axis in cut]
        inputs[0] = build.node("Slice", inputs[0], *(build.integers(*each) for each in (starts, ends, axes)))
        pads[:rank] = [max(each, 0) for each in pads[:rank]]
    pads[rank:] = [max(each, 0) for each in pads[rank:]]  # less than a stride: no window fits there
    for axis, (kernel, dilation) in enumerate(
        zip(node.attributes["kernel_shape"], node.get("dilations") or [1] * rank)
    ):
        # a dilated window that is larger than the data is one window
        pads[rank + axis] += max((kernel - 1) * dilation + 1 - shape[2 + axis] - pads[axis] - pads[rank + axis], 0)
    _same_name(node, build, inputs, **{**kept, "pads": pads})


def same_pads(attributes: dict[str, Any], shape: tuple[int, ...]) -> list[int]:
    """Return the paddings of a pooling with `auto_pad` over data of `shape`; less than 0 for elements that no window reads."""
    rank = len(shape) - 2
    strides = attributes.get("strides") or [1] * rank
    begins, ends = [], []
    for size, stride, kernel in zip(shape[2:], strides, attributes["kernel_shape"], strict=True):
        total = (-(-size // stride) - 1) * stride + kernel - size
        begins.append(begin_of(total, attributes["auto_pad"]))
        ends.append(total - begins[-1])
    return begins + ends


def begin_of(total: int, automatic: str) -> int:
    """Return the padding before an axis, of `total` elements on both sides; of SAME_UPPER, the smaller half."""
    return int(total / 2) if automatic == "SAME_UPPER" else int((total + 1) / 2)


def kernel_shape(node: NodeView, build: NodeBuilder) -> None:
    """Give a convolution the shape of its kernel: its weights have it."""
    weight = node.shape(1)
    if node.get("auto_pad") in SAME and "kernel_shape" not in node.attributes and weight is not None:
        _same_name(node, build, list(node.input), **node.attributes, kernel_shape=list(weight[2:]))


def _same_name(node: NodeView, build: NodeBuilder, inputs: list[str], **attributes: object) -> None:
    build.many(node.op_type, inputs, node.output, **attributes)
    build.nodes[-1].name = node.proto.name or build.nodes[-1].name
