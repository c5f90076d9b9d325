"""Compute numbers of few bits in wider dtypes: bfloat16 and narrower floats in float32, integers of 2 and 4 bits in bytes.

    a: bfloat16 ─► Add ─► y: bfloat16        becomes        a ─► Cast ─► Add ─► Cast ─► y

Every result is rounded to its dtype, so that the numbers are those of the file. Only casts are left to read and make narrow
ones, and DequantizeLinear, of constant weights of 4 bits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from ..canonical.graph_context import Context, context_of
from ..canonical.node_builder import NodeBuilder, attributes_of, build_replacements, spliced
from ..canonical.ports.values import NARROW, NARROW_WEIGHTS, dtype_of, elem_type
from ..canonical.read_onnx import refuse

if TYPE_CHECKING:
    import onnx


def widen_numbers(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return `model` (with inferred shapes) with narrow numbers read and made by casts alone. Raises ModelError for a subgraph of such."""
    context = context_of(model)
    return spliced(model, build_replacements(model.graph, context.names, _Widening(context).replace))


class _Widening:
    """Build nodes on wide numbers; each narrow value is widened once."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._wide: dict[str, str] = {}

    def is_narrow(self, name: str) -> bool:
        return self._dtype(name) in NARROW

    def _dtype(self, name: str) -> str:
        kind = self._context.types.get(name)
        number = kind.tensor_type.elem_type if kind is not None else 0
        return dtype_of(number) if number else ""

    def _widened(self, name: str, build: NodeBuilder) -> str:
        """Return a value in its wide dtype; others as they are."""
        if not self.is_narrow(name):
            return name
        if name not in self._wide:
            self._wide[name] = build.cast(name, NARROW[self._dtype(name)])
        return self._wide[name]

    def _floats(self, name: str, build: NodeBuilder) -> str:
        """Return a value in float32."""
        wide = self._widened(name, build)
        single = NARROW.get(self._dtype(name), self._dtype(name)) == "float32"
        return wide if single else build.cast(wide, "float32")

    def replace(self, node: onnx.NodeProto, build: NodeBuilder) -> None:
        """Build the replacement of a node that reads or makes narrow numbers; none if it is in its form."""
        if not any(map(self.is_narrow, (*node.input, *node.output))):
            return
        attributes = attributes_of(node)
        if node.op_type == "QuantizeLinear" and attributes.get("precision", 0) not in (0, elem_type("float32")):
            refuse(node, "divides in another precision than float32", "Quantise it without `precision`.")
        if any(attribute.HasField("g") for attribute in node.attribute):
            what = "reads or makes numbers of few bits, which only operators without a graph inside do"
            refuse(node, what, "Cast them before and behind it.")
        if node.op_type in ("Cast", "CastLike"):
            self._cast(node, attributes, build)
        elif node.op_type == "QuantizeLinear" and (
            self.is_narrow(node.output[0]) or self._is_divided(node, attributes)
        ):
            self._quantise(node, attributes, build)
        elif node.op_type == "DequantizeLinear" and self.is_narrow(node.input[0]):
            self._dequantise(node, attributes, build)
        elif node.op_type != "BitCast":
            self._compute(node, build)

    def _compute(self, node: onnx.NodeProto, build: NodeBuilder) -> None:
        from onnx import AttributeProto, numpy_helper

        inputs = [self._widened(name, build) for name in node.input]
        core = build.copy(node)
        core.input[:] = inputs
        for attribute in core.attribute:
            if attribute.name in ("dtype", "output_dtype") and dtype_of(attribute.i) in NARROW:
                attribute.i = elem_type(NARROW[dtype_of(attribute.i)])
            elif attribute.type == AttributeProto.TENSOR and dtype_of(attribute.t.data_type) in NARROW:
                numbers = numpy_helper.to_array(attribute.t)
                attribute.t.CopyFrom(numpy_helper.from_array(numbers.astype(NARROW[numbers.dtype.name])))
        for place, name in enumerate(node.output):
            if self.is_narrow(name):
                core.output[place] = build.names.new(f"{name}/wide")
                build.cast(core.output[place], self._dtype(name), name)

    def _cast(self, node: onnx.NodeProto, attributes: dict[str, Any], build: NodeBuilder) -> None:
        """Cast from and to the wide dtype alone, or from float32."""
        given, made = (self._dtype(name) for name in (node.input[0], node.output[0]))
        if made not in NARROW:
            if NARROW[given] != made or node.op_type == "CastLike":
                build.cast(self._widened(node.input[0], build), made, node.output[0])
            return
        have = NARROW.get(given, given)
        want = "float32" if np.dtype(have).kind == "f" else NARROW[made]
        if (have, node.op_type) == (want, "Cast") and given not in NARROW:
            return
        value = self._widened(node.input[0], build)
        if have != want:
            value = build.cast(value, want)
        limits = {"saturate": attributes["saturate"]} if "saturate" in attributes else {}
        build.node("Cast", value, result=node.output[0], to=elem_type(made), **limits)

    def _is_divided(self, node: onnx.NodeProto, attributes: dict[str, Any]) -> bool:
        """Tell whether a QuantizeLinear divides in narrow numbers: those of its scale, by ONNX's set 23, without `precision`."""
        return self.is_narrow(node.input[1]) and not attributes.get("precision")

    def _quantise(self, node: onnx.NodeProto, attributes: dict[str, Any], build: NodeBuilder) -> None:
        x, scale, zero = [*node.input, ""][:3]
        result, made = node.output[0], self._dtype(node.output[0])
        options = {name: value for name, value in attributes.items() if name in ("axis", "block_size")}
        value, steps = (self._floats(name, build) for name in (x, scale))
        divided = self._is_divided(node, attributes)
        if divided or NARROW[made] == "float32":
            value = build.node("Div", value, self._along(steps, x, scale, attributes, build))
        if divided:
            value = build.cast(build.cast(value, self._dtype(scale)), "float32")
            steps = build.constant(np.ones(self._context.shape(scale) or (), np.float32))
        if made not in NARROW:
            build.node("QuantizeLinear", value, steps, *((zero,) if zero else ()), result=result, **attributes)
            return
        if NARROW[made] == "float32":
            if zero:
                shift = self._along(self._widened(zero, build), x, zero, attributes, build)
                value = build.node("Add", value, shift)
            build.node("Cast", value, result=result, to=elem_type(made), saturate=attributes.get("saturate", 1))
            return
        nothing = np.zeros(self._context.shape(scale) or (), NARROW[made])
        offset = self._widened(zero, build) if zero else build.constant(nothing)
        bytes_ = build.node("QuantizeLinear", value, steps, offset, **options)
        limits = ml_dtypes.iinfo(getattr(ml_dtypes, made))
        least, most = (build.number(int(each), NARROW[made]) for each in (limits.min, limits.max))
        self._wide[result] = build.node("Clip", bytes_, least, most)
        build.cast(self._wide[result], made, result)

    def _dequantise(self, node: onnx.NodeProto, attributes: dict[str, Any], build: NodeBuilder) -> None:
        x, scale, zero = [*node.input, ""][:3]
        given, result = self._dtype(x), node.output[0]
        if given in NARROW_WEIGHTS and x in self._context.constants:
            return
        made = self._dtype(result)
        if NARROW[given] == "float32":
            value = self._widened(x, build)
            if zero:
                shift = self._along(self._widened(zero, build), x, zero, attributes, build)
                value = build.node("Sub", value, shift)
            steps = self._along(self._floats(scale, build), x, scale, attributes, build)
            value = build.node("Mul", value, steps)
        else:
            offset = self._widened(zero, build)
            options = {name: each for name, each in attributes.items() if name in ("axis", "block_size")}
            value = self._widened(x, build)
            value = build.node("DequantizeLinear", value, self._floats(scale, build), offset, **options)
        if made == "float32":
            build.nodes[-1].output[0] = result
        else:
            build.cast(value, made, result)

    def _along(self, value: str, x: str, like: str, attributes: dict[str, Any], build: NodeBuilder) -> str:
        """Return scales or zero points in a shape that spreads over `x`: a line of them along an axis, or blocks repeated."""
        shape, sizes = (self._context.shape(name) or () for name in (x, like))
        axis = attributes.get("axis", 1)
        if len(sizes) == 1 and len(shape) > 1:
            return build.node(
                "Reshape", value, build.integers(*(-1 if n == axis % len(shape) else 1 for n in range(len(shape))))
            )
        if block := attributes.get("block_size"):
            places = np.arange(shape[axis]) // block
            return build.node("Gather", value, build.constant(places), axis=axis)
        return value
