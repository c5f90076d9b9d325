"""Write out what TVM's importer derives wrongly, or not at all, from `auto_pad`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..node_builder import NodeBuilder

if TYPE_CHECKING:
    import onnx

    from ..rewrites import Context

SAME = ("SAME_LOWER", "SAME_UPPER")


def pooling_pads(node: onnx.NodeProto, attributes: dict[str, Any], context: Context, build: NodeBuilder) -> None:
    """Give a pooling its paddings: as many results as input size ÷ stride, rounded up.

    TVM rounds down for SAME_LOWER, and pads less than nothing where strides exceed the kernel. Dilations do not count,
    as in ONNX Runtime: a dilated pooling has fewer results.
    """
    shape = context.shape(node.input[0])
    if attributes.get("auto_pad") not in SAME or shape is None:
        return
    kept = {name: value for name, value in attributes.items() if name not in ("auto_pad", "ceil_mode")}
    _same_name(node, build, **{**kept, "pads": same_pads(attributes, shape)})


def same_pads(attributes: dict[str, Any], shape: tuple[int, ...]) -> list[int]:
    """Return the paddings of a pooling with `auto_pad` over data of `shape`."""
    rank = len(shape) - 2
    strides = attributes.get("strides") or [1] * rank
    begins, ends = [], []
    for size, stride, kernel in zip(shape[2:], strides, attributes["kernel_shape"], strict=True):
        total = max((-(-size // stride) - 1) * stride + kernel - size, 0)
        less, more = total // 2, total - total // 2
        upper = attributes["auto_pad"] == "SAME_UPPER"
        begins.append(less if upper else more)
        ends.append(more if upper else less)
    return begins + ends


def kernel_shape(node: onnx.NodeProto, attributes: dict[str, Any], context: Context, build: NodeBuilder) -> None:
    """Give a convolution the shape of its kernel, which is that of its weights."""
    weight = context.shape(node.input[1])
    if attributes.get("auto_pad") in SAME and "kernel_shape" not in attributes and weight is not None:
        _same_name(node, build, **attributes, kernel_shape=list(weight[2:]))


def _same_name(node: onnx.NodeProto, build: NodeBuilder, **attributes: object) -> None:
    build.many(node.op_type, list(node.input), len(node.output), **attributes)
    build.nodes[-1].output[:] = node.output
    build.nodes[-1].name = node.name or build.nodes[-1].name
