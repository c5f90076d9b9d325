"""Look up constants and ranks around a vendor's node, as far as they are known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..canonical.graph_context import Values
from ..canonical.node_builder import NodeBuilder

if TYPE_CHECKING:
    import onnx


Attributes = dict[str, Any]


@dataclass(frozen=True)
class Surroundings(Values):
    """Types and constants around a node, of Constant nodes too, and the values that are `read`."""

    read: frozenset[str] = frozenset()


#: builds the nodes that replace a node; raises UnsupportedForm if its form has no equal, or is not known yet
Rule = Callable[["onnx.NodeProto", Attributes, Surroundings, NodeBuilder], None]


def inputs_of(node: onnx.NodeProto, count: int) -> list[str]:
    """Return the names of the first `count` inputs, "" for absent ones."""
    return [*node.input, *[""] * count][:count]


def dequantised(build: NodeBuilder, tensor: str, scale: str, zero: str, **attributes: Any) -> str:
    """Build a DequantizeLinear; an absent zero point is 0."""
    return build.node("DequantizeLinear", tensor, scale, zero, **attributes)


def quantised(build: NodeBuilder, value: str, scale: str, zero: str, result: str) -> str:
    """Build a QuantizeLinear; an absent zero point is 0 of uint8, as in ONNX."""
    return build.node("QuantizeLinear", value, scale, zero, result=result)
