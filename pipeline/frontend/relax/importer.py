"""Extend TVM's ONNX importer: report the present node, and name variables after it.

Imports TVM: only imported once a graph is made.
"""

from __future__ import annotations

import functools

import onnx
from tvm import relax
from tvm.ir import IRModule
from tvm.relax.frontend.onnx.onnx_frontend import ONNXGraphImporter

from ..canonical.recurrent import RECURRENT
from .provenance import variable_name
from .recurrent_node import convert_recurrent

#: TVM stacks the inputs of these along a new axis and reduces it, which needs memory for all of them at once
_PAIRWISE = {"Max": relax.op.maximum, "Min": relax.op.minimum}


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

    def from_onnx(self, graph: onnx.GraphProto, opset: int) -> IRModule:
        """Import the graph; close TVM's open block if a node fails."""
        try:
            return super().from_onnx(graph, opset)
        finally:
            if self.node is not None:  # TVM leaves the block of a failed function open, and would warn of it
                self.bb._end_block()

    def _check_for_unsupported_ops(self, graph: onnx.GraphProto) -> None:
        """Pass over the operators converted here, which TVM does not know."""
        others = onnx.GraphProto(node=[node for node in graph.node if node.op_type not in RECURRENT])
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
        if op_name in RECURRENT:
            assert self.node is not None
            return convert_recurrent(self.bb, op_name, inputs, attrs, self.node.output)
        if op_name in _PAIRWISE:
            return self.bb.normalize(functools.reduce(_PAIRWISE[op_name], inputs))
        return super()._convert_operator(op_name, inputs, attrs, opset)
