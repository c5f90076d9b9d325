"""Extend TVM's ONNX importer: report the present node, and name variables after it.

Imports TVM: only imported once a graph is made.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import onnx
from tvm import relax, topi
from tvm.error import OpNotImplemented
from tvm.ir import GenericConst, IRModule
from tvm.relax.frontend.onnx.onnx_frontend import ONNXGraphImporter, get_type

from ..canonical.node_builder import attributes_of
from ..canonical.node_form import UnsupportedForm, form_of
from ..canonical.shapes import value_types
from .integer.integer_node import INTEGER, convert_integer
from .loop_node import convert_loop, joins_of
from .narrow_numbers import NARROW_CASTS, code_narrow_casts, convert_bit_cast, convert_narrow_cast
from .narrow_weights import NARROW_WEIGHTS, convert_narrow
from .operators.bounded_gather import GATHERS, clipped_indices, convert_bounded_gather
from .operators.conversions import convert_to_integers, narrows_floats
from .operators.dynamic_quantisation import convert_dynamic_quantisation
from .operators.extremes import EXTREMES, convert_extreme
from .operators.pool_kernel import convert_max_pool
from .operators.shifts import convert_shift
from .provenance import variable_name

#: operators that TVM does not know, converted here
CONVERTED = INTEGER | NARROW_WEIGHTS | NARROW_CASTS | {"BitCast", "CumProd", "Scan"}
#: failures of TVM's converters
_TVM_FAILURES = (
    OpNotImplemented, NotImplementedError, AssertionError, ArithmeticError, AttributeError, LookupError, RuntimeError,
    TypeError, ValueError,
)  # fmt: skip
#: operators whose kernels TVM makes in float32, or in the dtype of the places, whatever dtype it says
_SAMPLED = frozenset({"GridSample", "RoiAlign"})
#: the first operator set whose RoiAlign has a mode of coordinates
_ROI_MODES = 16


class NodeImporter(ONNXGraphImporter):
    """Importer of one graph; `node` is the present ONNX node, None before and after.

    `shapes` are those of the inputs: TVM reads a dimension of 0 in the file as an unknown one.
    """

    def __init__(self, shapes: dict[str, list[int]]) -> None:
        super().__init__(shapes, "float32", keep_params_in_input=False, sanitize=True)
        self.node: onnx.NodeProto | None = None
        self._variable = ""
        emit = self.bb.emit
        self.bb.emit = lambda expr, name_hint="": emit(expr, name_hint or self._variable)
        emit_te = self.bb.emit_te
        self.bb.emit_te = lambda function, *args, **options: (
            _pad(self.bb, *args) if _pads(function, *args) else emit_te(function, *args, **options)
        )

    def from_onnx(self, graph: onnx.GraphProto, opset: int) -> IRModule:
        """Import the graph; close TVM's open block if a node fails."""
        graph, self._operator_set = code_narrow_casts(graph), opset
        self._shapes = {
            value.name: [dim.dim_value for dim in value.type.tensor_type.shape.dim]
            for value in (*graph.value_info, *graph.output)
        }
        self._joins = joins_of(graph, self._shapes)
        self._clipped, self._types = clipped_indices(graph), value_types(graph)
        try:
            return super().from_onnx(graph, opset)
        finally:
            if self.node is not None:  # TVM leaves the block of a failed function open, and would warn of it
                self.bb._end_block()

    def _import(self, graph: onnx.GraphProto) -> IRModule:
        """Import the body of a loop."""
        shapes = {value.name: [dim.dim_value for dim in value.type.tensor_type.shape.dim] for value in graph.input}
        return NodeImporter(shapes).from_onnx(graph, self._operator_set)

    def _check_for_unsupported_ops(self, graph: onnx.GraphProto) -> None:
        """Pass over the operators converted here, which TVM does not know."""
        others = onnx.GraphProto(node=[node for node in graph.node if node.op_type not in CONVERTED])
        super()._check_for_unsupported_ops(others)

    def _construct_nodes(self, graph: onnx.GraphProto) -> None:
        for index, node in enumerate(graph.node):
            self.node, self._variable = node, variable_name(index)
            super()._construct_nodes(onnx.GraphProto(node=[node]))
            for name in node.output:
                self._bind(name)
        self.node, self._variable = None, ""

    def _bind(self, name: str) -> None:
        """Bind a result to its variable now.

        Left as an expression, it would be bound by the node that reads it first.
        """
        result = self._nodes.get(name)
        if isinstance(result, (relax.Call, relax.TupleGetItem)):
            self._nodes[name] = self.bb.emit(result)

    def _convert_operator(
        self, op_name: str, inputs: list[relax.Expr], attrs: dict[str, object], opset: int
    ) -> relax.Expr:
        if op_name == "Scan":
            assert self.node is not None
            return convert_loop(self.bb, inputs, self.node, self._import, self._joins)
        if op_name == "Concat" and self.node is not None and self.node.input[0] in self._joins:
            return inputs[0]
        if op_name in GATHERS and self.node is not None and self.node.input[1] in self._clipped:
            bounds, axis = self._clipped[self.node.input[1]], attributes_of(self.node).get("axis", 0)
            taken = convert_bounded_gather(self.bb, op_name, inputs[0], inputs[1], axis, bounds)
            if taken is not None:
                return taken
        if op_name in INTEGER:
            return convert_integer(self.bb, op_name, inputs, attrs)
        if op_name in NARROW_WEIGHTS:
            return convert_narrow(self.bb, op_name, inputs, attrs)
        if op_name in NARROW_CASTS:
            return convert_narrow_cast(self.bb, op_name, inputs[0], attrs)
        if op_name == "BitCast":
            return convert_bit_cast(self.bb, inputs[0], get_type(attrs["to"]))
        if op_name == "CumProd":
            return _cumulative_product(self.bb, inputs, attrs)
        if op_name in EXTREMES:
            return convert_extreme(self.bb, op_name, list(inputs))
        if op_name == "Cast" and isinstance(inputs[0], relax.Var) and narrows_floats(inputs[0], get_type(attrs["to"])):
            return convert_to_integers(self.bb, inputs[0], get_type(attrs["to"]))
        if op_name == "BitShift" and self.node is not None:
            return convert_shift(self.bb, inputs[0], inputs[1], attributes_of(self.node)["direction"])
        if op_name == "DynamicQuantizeLinear":
            return convert_dynamic_quantisation(self.bb, inputs[0])
        if op_name == "RoiAlign":
            inputs[1] = _half_pixel(self.bb, inputs[1], attrs, opset)
        if op_name == "MaxPool" and self.node is not None and any(self.node.output[1:]):
            return convert_max_pool(self.bb, inputs[0], attrs, self._shapes[self.node.output[0]])
        if op_name in _SAMPLED:
            data = str(inputs[0].ty.dtype)
            wide = "float64" if data == "float64" else "float32"
            for number in (0, 1):
                inputs[number] = _cast(self.bb, inputs[number], wide)
            return _cast(self.bb, self._convert_by_tvm(op_name, inputs, attrs, opset), data)
        return self._convert_by_tvm(op_name, inputs, attrs, opset)

    def _convert_by_tvm(
        self, op_name: str, inputs: list[relax.Expr], attrs: dict[str, object], opset: int
    ) -> relax.Expr:
        """Convert by TVM; refuse what it fails on by the form of the node: TVM's own words are assertions and dumps."""
        try:
            return super()._convert_operator(op_name, inputs, attrs, opset)
        except _TVM_FAILURES as error:
            assert self.node is not None
            raise UnsupportedForm(f"its form is not supported ({form_of(self.node, self._types)})") from error


def _pads(function: Callable[..., Any], data: relax.Expr, *widths: Any) -> bool:
    """Return whether TVM is about to make a kernel of constant padding, which Relax has an operator for."""
    if function is not topi.nn.pad or not str(data.ty.dtype).startswith("float"):
        return False
    return all(int(width) >= 0 for side in widths[:2] for width in side)


def _pad(
    builder: relax.BlockBuilder, data: relax.Expr, before: Sequence[int], after: Sequence[int], value: float = 0.0
) -> relax.Var:
    """Emit the operator: rewrite rules know it, a kernel made at once they do not."""
    widths = [int(width) for pair in zip(before, after, strict=True) for width in pair]
    return builder.emit(relax.op.nn.pad(data, widths, "constant", float(value)))


def _cumulative_product(builder: relax.BlockBuilder, inputs: Sequence[relax.Expr], attrs: dict[str, Any]) -> relax.Expr:
    if not isinstance(inputs[1], GenericConst):
        raise UnsupportedForm("its axis is computed; freeze the input it depends on (--fix)")
    axis, back = int(inputs[1].value.numpy().item()), bool(attrs.get("reverse", 0))
    data = builder.emit(relax.op.flip(inputs[0], axis)) if back else inputs[0]
    product = builder.emit(relax.op.cumprod(data, axis, exclusive=bool(attrs.get("exclusive", 0))))
    return builder.emit(relax.op.flip(product, axis)) if back else product


def _cast(builder: relax.BlockBuilder, value: relax.Expr, dtype: str) -> relax.Expr:
    value = builder.normalize(value)
    return value if str(value.ty.dtype) == dtype else builder.emit(relax.op.astype(value, dtype))


def _half_pixel(builder: relax.BlockBuilder, regions: relax.Expr, attrs: dict[str, Any], opset: int) -> relax.Expr:
    """Shift the regions of a RoiAlign so that they move by half a pixel once scaled: TVM moves them before that."""
    mode = attrs.get("coordinate_transformation_mode", b"half_pixel" if opset >= _ROI_MODES else b"output_half_pixel")
    scale = float(attrs.get("spatial_scale", 1.0))
    if mode != b"half_pixel" or scale == 1:
        return regions
    return builder.emit(relax.op.add(regions, relax.const(0.5 - 0.5 / scale, str(regions.ty.dtype))))
