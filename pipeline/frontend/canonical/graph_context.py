"""Look up types, constants and producers of the values of a graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .node_builder import Names
from .read_onnx import operator_set
from .shapes import static_shape, value_types

if TYPE_CHECKING:
    import onnx


@dataclass(frozen=True)
class Context:
    """Types, constants and producers of the values around a node, and the names of its graph, for rules."""

    types: dict[str, onnx.TypeProto]
    constants: dict[str, onnx.TensorProto]
    opset: int
    producers: dict[str, onnx.NodeProto]
    names: Names

    def constant(self, name: str) -> np.ndarray | None:
        """Return the value of an initializer, else None."""
        from onnx import numpy_helper

        return numpy_helper.to_array(self.constants[name]) if name in self.constants else None

    def shape(self, name: str) -> tuple[int, ...] | None:
        """Return the static shape of a value, else None."""
        return static_shape(self.types[name]) if name in self.types else None

    def dtype(self, name: str) -> np.dtype:
        """Return the dtype of a value."""
        from onnx import helper

        return np.dtype(helper.tensor_dtype_to_np_dtype(self.types[name].tensor_type.elem_type))


def context_of(model: onnx.ModelProto) -> Context:
    """Return the types and constants of a model with inferred shapes."""
    constants = {tensor.name: tensor for tensor in model.graph.initializer}
    producers = {name: node for node in model.graph.node for name in node.output}
    return Context(value_types(model.graph), constants, operator_set(model.opset_import), producers, Names(model.graph))
