"""Look up makers and readers of the values of an ONNX graph."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..canonical.graph_context import Context, context_of
from .quantisation import Quantised, quantised_by

if TYPE_CHECKING:
    import onnx


@dataclass(frozen=True)
class Dataflow(Context):
    """Graph of a model with inferred shapes and without subgraphs, as it was when this was made."""

    reads: Counter[str] = field(kw_only=True)

    def maker(self, name: str, *operators: str) -> onnx.NodeProto | None:
        """Return the node that makes a value, if it is one of `operators`."""
        node = self.producers.get(name)
        return node if node is not None and node.op_type in operators else None

    def sole(self, name: str, *operators: str) -> onnx.NodeProto | None:
        """Return the maker of a value that is read once, and is not an output."""
        return self.maker(name, *operators) if self.reads[name] == 1 else None

    def dequantised(self, name: str) -> Quantised | None:
        """Return the integer tensor a float value is dequantised from."""
        node = self.maker(name, "DequantizeLinear")
        return quantised_by(node, self) if node is not None else None


def dataflow_of(model: onnx.ModelProto) -> Dataflow:
    """Return the values of a model with inferred shapes, and how often each is read."""
    reads = Counter(name for node in model.graph.node for name in node.input)
    reads.update(value.name for value in model.graph.output)
    return Dataflow(**vars(context_of(model)), reads=reads)
