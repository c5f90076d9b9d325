"""Express QLinearAdd and its kind: dequantise, compute, quantise."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..canonical.node_builder import NodeBuilder
from ..canonical.node_form import UnsupportedForm
from .context import Attributes, Rule, Surroundings, dequantised, inputs_of, quantised

if TYPE_CHECKING:
    import onnx


def _between(operator: str, *places: int) -> Rule:
    """Return the rule of an operator on dequantised operands, each at a place with its scale and zero point behind it.

    The last place is that of the result's scale; inputs before the first one stay.
    """
    *starts, end = places

    def rule(node: onnx.NodeProto, attributes: Attributes, around: Surroundings, build: NodeBuilder) -> None:
        given = inputs_of(node, end + 2)
        operands = [dequantised(build, *given[start : start + 3]) for start in starts]
        value = build.node(operator, *given[: starts[0]], *operands, **attributes)
        quantised(build, value, given[end], given[end + 1], node.output[0])

    return rule


def _concat(node: onnx.NodeProto, attributes: Attributes, around: Surroundings, build: NodeBuilder) -> None:
    scale, zero, *parts = node.input
    values = [dequantised(build, *parts[start : start + 3]) for start in range(0, len(parts), 3)]
    quantised(build, build.node("Concat", *values, **attributes), scale, zero, node.output[0])


def _softmax(node: onnx.NodeProto, attributes: Attributes, around: Surroundings, build: NodeBuilder) -> None:
    """Build Softmax; of an opset below 13 it takes all dimensions from `axis` on together."""
    given = inputs_of(node, 5)
    value, axis = dequantised(build, *given[:3]), attributes.get("axis", -1)
    if attributes.get("opset", 13) >= 13:
        value = build.node("Softmax", value, axis=axis)
    else:
        flat = build.node("Softmax", build.node("Flatten", value, axis=axis), axis=-1)
        value = build.node("Reshape", flat, build.node("Shape", given[0]))
    quantised(build, value, given[3], given[4], node.output[0])


def _pool(operator: str) -> Rule:
    def rule(node: onnx.NodeProto, attributes: Attributes, around: Surroundings, build: NodeBuilder) -> None:
        """Build the pool; TVM and ONNX have channels first."""
        given, options = inputs_of(node, 5), dict(attributes)
        last = options.pop("channels_last", 0)
        rank = len(options["kernel_shape"]) + 2 if "kernel_shape" in options else around.rank(given[0])
        if last and rank is None:
            raise UnsupportedForm("the rank of its input is not known")
        value, axes = dequantised(build, *given[:3]), range(rank or 0)
        if last:
            value = build.node("Transpose", value, perm=[0, *axes[-1:], *axes[1:-1]])
        value = build.node(operator, value, **options)
        if last:
            value = build.node("Transpose", value, perm=[0, *axes[2:], 1])
        quantised(build, value, given[3], given[4], node.output[0])

    return rule


def own(node: onnx.NodeProto, attributes: Attributes, around: Surroundings, build: NodeBuilder) -> None:
    """Build ONNX's operator of the same name, inputs and attributes."""
    build.many(node.op_type, node.input, node.output, **attributes)


RULES: dict[str, Rule] = {
    "DequantizeLinear": own,
    "QLinearAdd": _between("Add", 0, 3, 6),
    "QLinearAveragePool": _pool("AveragePool"),
    "QLinearConcat": _concat,
    "QLinearGlobalAveragePool": _pool("GlobalAveragePool"),
    "QLinearLeakyRelu": _between("LeakyRelu", 0, 3),
    "QLinearMul": _between("Mul", 0, 3, 6),
    "QLinearSigmoid": _between("Sigmoid", 0, 3),
    "QLinearSoftmax": _softmax,
    "QLinearWhere": _between("Where", 1, 4, 7),
    "QuantizeLinear": own,
}
