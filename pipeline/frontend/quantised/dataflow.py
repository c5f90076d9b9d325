"""Look up makers and readers of the values of an ONNX graph."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from ..canonical.graph_context import Context, context_of
from .quantisation import Quantised, quantised_by

if TYPE_CHECKING:
    import onnx


class Dataflow:
    """Graph of a model with inferred shapes and without subgraphs, as it was when this was made."""

    def __init__(self, model: onnx.ModelProto):
        self.context: Context = context_of(model)
        self._reads = Counter(name for node in model.graph.node for name in node.input)
        self._reads.update(value.name for value in model.graph.output)

    def maker(self, name: str, *operators: str) -> onnx.NodeProto | None:
        """Return the node that makes a value, if it is one of `operators`."""
        node = self.context.producers.get(name)
        return node if node is not None and node.op_type in operators else None

    def sole(self, name: str, *operators: str) -> onnx.NodeProto | None:
        """Return the maker of a value that is read once, and is not an output."""
        return self.maker(name, *operators) if self._reads[name] == 1 else None

    def dequantised(self, name: str) -> Quantised | None:
        """Return the integer tensor a float value is dequantised from."""
        node = self.maker(name, "DequantizeLinear")
        return quantised_by(node, self.context) if node is not None else None
