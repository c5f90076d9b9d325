"""Express QLinearAdd and its kind: dequantise, compute, quantise."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..canonical.node_builder import NodeBuilder
from .context import Attributes, Rule, Surroundings, dequantised, inputs_of, quantised

if TYPE_CHECKING:
    import onnx


def _binary(operator: str) -> Rule:
    def rule(node: onnx.NodeProto, attributes: Attributes, around: Surroundings, build: NodeBuilder) -> str | None:
        given = inputs_of(node, 8)
        sides = (dequantised(build, *given[start : start + 3]) for start in (0, 3))
        quantised(build, build.node(operator, *sides), given[6], given[7], node.output[0])
        return None

    return rule


def _unary(operator: str) -> Rule:
    def rule(node: onnx.NodeProto, attributes: Attributes, around: Surroundings, build: NodeBuilder) -> str | None:
        given = inputs_of(node, 5)
        value = build.node(operator, dequantised(build, *given[:3]), **attributes)
        quantised(build, value, given[3], given[4], node.output[0])
        return None

    return rule


def _concat(node: onnx.NodeProto, attributes: Attributes, around: Surroundings, build: NodeBuilder) -> str | None:
    scale, zero, *parts = node.input
    values = [dequantised(build, *parts[start : start + 3]) for start in range(0, len(parts), 3)]
    quantised(build, build.node("Concat", *values, **attributes), scale, zero, node.output[0])
    return None


def _where(node: onnx.NodeProto, attributes: Attributes, around: Surroundings, build: NodeBuilder) -> str | None:
    given = inputs_of(node, 9)
    sides = [dequantised(build, *given[start : start + 3]) for start in (1, 4)]
    quantised(build, build.node("Where", given[0], *sides), given[7], given[8], node.output[0])
    return None


def _softmax(node: onnx.NodeProto, attributes: Attributes, around: Surroundings, build: NodeBuilder) -> str | None:
    """Build Softmax; of an opset below 13 it takes all dimensions from `axis` on together."""
    given = inputs_of(node, 5)
    value, axis = dequantised(build, *given[:3]), attributes.get("axis", -1)
    if attributes.get("opset", 13) >= 13:
        value = build.node("Softmax", value, axis=axis)
    else:
        flat = build.node("Softmax", build.node("Flatten", value, axis=axis), axis=-1)
        value = build.node("Reshape", flat, build.node("Shape", given[0]))
    quantised(build, value, given[3], given[4], node.output[0])
    return None


def _pool(operator: str) -> Rule:
    def rule(node: onnx.NodeProto, attributes: Attributes, around: Surroundings, build: NodeBuilder) -> str | None:
        """Build the pool; TVM and ONNX have channels first."""
        given, options = inputs_of(node, 5), dict(attributes)
        last = options.pop("channels_last", 0)
        rank = len(options["kernel_shape"]) + 2 if "kernel_shape" in options else around.rank(given[0])
        if last and rank is None:
            return "the rank of its input is not known"
        value, axes = dequantised(build, *given[:3]), range(rank or 0)
        if last:
            value = build.node("Transpose", value, perm=[0, *axes[-1:], *axes[1:-1]])
        value = build.node(operator, value, **options)
        if last:
            value = build.node("Transpose", value, perm=[0, *axes[2:], 1])
        quantised(build, value, given[3], given[4], node.output[0])
        return None

    return rule


def own(node: onnx.NodeProto, attributes: Attributes, around: Surroundings, build: NodeBuilder) -> str | None:
    """Build ONNX's operator of the same name, inputs and attributes."""
    build.node(node.op_type, *node.input, result=node.output[0], **attributes)
    return None


RULES: dict[str, Rule] = {
    "DequantizeLinear": own,
    "QLinearAdd": _binary("Add"),
    "QLinearAveragePool": _pool("AveragePool"),
    "QLinearConcat": _concat,
    "QLinearGlobalAveragePool": _pool("GlobalAveragePool"),
    "QLinearLeakyRelu": _unary("LeakyRelu"),
    "QLinearMul": _binary("Mul"),
    "QLinearSigmoid": _unary("Sigmoid"),
    "QLinearSoftmax": _softmax,
    "QLinearWhere": _where,
    "QuantizeLinear": own,
}
