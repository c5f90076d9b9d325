"""Look up types, constants and producers of the values of a graph, and all that is known of a node: one view for all rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from .node_builder import Names, NodeBuilder, attributes_of, build_replacements
from .read_onnx import ONNX_DOMAINS, operator_set
from .shapes import static_shape, value_types

if TYPE_CHECKING:
    import onnx

Sizes = tuple[int | None, ...]


@dataclass(frozen=True)
class Values:
    """Types and constants of values by name, as far as they are known before the model runs, and the producers of values.

    `read` are the names that something reads.
    """

    types: Mapping[str, onnx.TypeProto]
    constants: Mapping[str, onnx.TensorProto]
    opset: int = 0
    producers: Mapping[str, onnx.NodeProto] = field(default_factory=dict)
    read: frozenset[str] = frozenset()

    def constant(self, name: str) -> np.ndarray | None:
        """Return the value of a constant, else None."""
        from onnx import numpy_helper

        return numpy_helper.to_array(self.constants[name]) if name in self.constants else None

    def sizes(self, name: str) -> Sizes | None:
        """Return the sizes of a value, None for an open one; None for an unknown rank."""
        if name in self.constants:
            return tuple(self.constants[name].dims)
        kind = self.types.get(name)
        if kind is None or not kind.tensor_type.HasField("shape"):
            return None
        return tuple(dim.dim_value if dim.HasField("dim_value") else None for dim in kind.tensor_type.shape.dim)

    def shape(self, name: str) -> tuple[int, ...] | None:
        """Return the static shape of a value, else None."""
        if name in self.constants:
            return tuple(self.constants[name].dims)
        return static_shape(self.types[name]) if name in self.types else None

    def element(self, name: str) -> int:
        """Return ONNX's number of a value's dtype, 0 for an unknown one."""
        if name in self.constants:
            return self.constants[name].data_type
        return self.types[name].tensor_type.elem_type if name in self.types else 0

    def dtype(self, name: str) -> np.dtype:
        """Return the dtype of a value; float32 if it is not known."""
        from onnx import helper

        return np.dtype(helper.tensor_dtype_to_np_dtype(self.element(name) or 1))


@dataclass(frozen=True)
class Context(Values):
    """Values of a graph with inferred shapes, with their producers and all names of the graph."""

    types: dict[str, onnx.TypeProto]
    constants: dict[str, onnx.TensorProto]
    names: Names = field(kw_only=True)


def context_of(model: onnx.ModelProto) -> Context:
    """Return the types and constants of a model with inferred shapes."""
    constants = {tensor.name: tensor for tensor in model.graph.initializer}
    producers = {name: node for node in model.graph.node for name in node.output}
    opset, names = operator_set(model.opset_import), Names(model.graph)
    return Context(value_types(model.graph), constants, opset, producers, names=names)


class NodeView:
    """Node of a graph, and what is known of its values; operands are named by their places, other values by their names."""

    def __init__(self, node: onnx.NodeProto, graph: Values):
        """View `node` with the shapes, dtypes and constants of `graph`; its attributes may be changed."""
        self.proto, self.graph, self.attributes = node, graph, attributes_of(node)
        self.op_type, self.input, self.output = node.op_type, list(node.input), list(node.output)

    @property
    def key(self) -> str:
        """Name the operator: with its domain, if it is not ONNX's own."""
        return self.op_type if self.proto.domain in ONNX_DOMAINS else f"{self.proto.domain}:{self.op_type}"

    @property
    def result(self) -> str:
        """Return the name of the first result."""
        return self.output[0]

    def inputs(self, count: int) -> list[str]:
        """Return the names of the first `count` operands, "" for absent ones."""
        return [*self.input, *[""] * count][:count]

    def outputs(self, count: int) -> list[str]:
        """Return the names of the first `count` results, "" for absent ones."""
        return [*self.output, *[""] * count][:count]

    def get(self, attribute: str, default: Any = None) -> Any:
        """Return the value of an attribute."""
        return self.attributes.get(attribute, default)

    def name(self, value: int | str) -> str:
        """Return the name of an operand by its place, "" for an absent one; names stay."""
        return value if isinstance(value, str) else self.input[value] if value < len(self.input) else ""

    def constant(self, value: int | str) -> np.ndarray | None:
        """Return the value of a constant, else None."""
        return self.graph.constant(self.name(value))

    def sizes(self, value: int | str) -> Sizes | None:
        """Return the sizes of a value, None for an open one; None for an unknown rank."""
        return self.graph.sizes(self.name(value))

    def shape(self, value: int | str) -> tuple[int, ...] | None:
        """Return the static shape of a value, else None."""
        return self.graph.shape(self.name(value))

    def rank(self, value: int | str) -> int | None:
        """Return the number of dimensions of a value, else None."""
        sizes = self.sizes(value)
        return None if sizes is None else len(sizes)

    def extent(self, value: int | str, axis: int) -> int | None:
        """Return the size of a dimension, None if it is not known."""
        sizes = self.sizes(value) or ()
        return sizes[axis] if -len(sizes) <= axis < len(sizes) else None

    def element(self, value: int | str) -> int:
        """Return ONNX's number of a value's dtype, 0 for an unknown one."""
        return self.graph.element(self.name(value))

    def dtype(self, value: int | str) -> np.dtype:
        """Return the dtype of a value; float32 if it is not known."""
        return self.graph.dtype(self.name(value))


#: builds the nodes that replace a node, or none to leave it. Raises UnsupportedForm for a form without an equal
Rule = Callable[[NodeView, NodeBuilder], None]


def apply_rules(model: onnx.ModelProto, rules: Mapping[str, Rule]) -> dict[int, NodeBuilder]:
    """Build what the rules of operators replace the nodes of a model (with inferred shapes) by, for `splice`."""
    if not any(node.op_type in rules for node in model.graph.node):
        return {}
    context = context_of(model)

    def apply(node: onnx.NodeProto, build: NodeBuilder) -> None:
        if node.op_type in rules:
            rules[node.op_type](NodeView(node, context), build)

    return build_replacements(model.graph, context.names, apply)
