"""Express QLinearAdd and its kind: dequantise, compute, quantise."""

from __future__ import annotations

from ..canonical.graph_context import NodeView, Rule
from ..canonical.node_builder import NodeBuilder
from ..canonical.node_form import UnsupportedForm


def _between(operator: str, *places: int) -> Rule:
    """Return the rule of an operator on dequantised operands, each at a place with its scale and zero point behind it.

    The last place is that of the result's scale; inputs before the first one stay.
    """
    *starts, end = places

    def rule(node: NodeView, build: NodeBuilder) -> None:
        given = node.inputs(end + 2)
        operands = [build.node("DequantizeLinear", *given[start : start + 3]) for start in starts]
        value = build.node(operator, *given[: starts[0]], *operands, **node.attributes)
        build.node("QuantizeLinear", value, given[end], given[end + 1], result=node.result)

    return rule


def _concat(node: NodeView, build: NodeBuilder) -> None:
    scale, zero, *parts = node.input
    values = [build.node("DequantizeLinear", *parts[start : start + 3]) for start in range(0, len(parts), 3)]
    build.node("QuantizeLinear", build.node("Concat", *values, **node.attributes), scale, zero, result=node.result)


def _softmax(node: NodeView, build: NodeBuilder) -> None:
    """Build Softmax; of an opset below 13 it takes all dimensions from `axis` on together."""
    given = node.inputs(5)
    value, axis = build.node("DequantizeLinear", *given[:3]), node.get("axis", -1)
    if node.get("opset", 13) >= 13:
        value = build.node("Softmax", value, axis=axis)
    else:
        flat = build.node("Softmax", build.node("Flatten", value, axis=axis), axis=-1)
        value = build.node("Reshape", flat, build.node("Shape", given[0]))
    build.node("QuantizeLinear", value, given[3], given[4], result=node.result)


def _pool(operator: str) -> Rule:
    def rule(node: NodeView, build: NodeBuilder) -> None:
        """Build the pool; TVM and ONNX have channels first."""
        given, options = node.inputs(5), dict(node.attributes)
        last = options.pop("channels_last", 0)
        rank = len(options["kernel_shape"]) + 2 if "kernel_shape" in options else node.rank(given[0])
        if last and rank is None:
            raise UnsupportedForm("the rank of its input is not known")
        value, axes = build.node("DequantizeLinear", *given[:3]), range(rank or 0)
        if last:
            value = build.node("Transpose", value, perm=[0, *axes[-1:], *axes[1:-1]])
        value = build.node(operator, value, **options)
        if last:
            value = build.node("Transpose", value, perm=[0, *axes[2:], 1])
        build.node("QuantizeLinear", value, given[3], given[4], result=node.result)

    return rule


def own(node: NodeView, build: NodeBuilder) -> None:
    """Build ONNX's operator of the same name, inputs and attributes."""
    build.many(node.op_type, node.input, node.output, **node.attributes)


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
