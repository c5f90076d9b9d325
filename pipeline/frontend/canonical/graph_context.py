"""Look up types, constants and producers of the values of a graph: one view for all rules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .node_builder import Names
from .read_onnx import operator_set
from .shapes import static_shape, value_types

if TYPE_CHECKING:
    import onnx


@dataclass(frozen=True)
class Values:
    """Types and constants of values by name, as far as they are known before the model runs."""

    types: Mapping[str, onnx.TypeProto]
    constants: Mapping[str, onnx.TensorProto]

    def constant(self, name: str) -> np.ndarray | None:
        """Return the value of a constant, else None."""
        from onnx import numpy_helper

        return numpy_helper.to_array(self.constants[name]) if name in self.constants else None

    def sizes(self, name: str) -> tuple[int | None, ...] | None:
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

    def rank(self, name: str) -> int | None:
        """Return the number of dimensions of a value, else None."""
        sizes = self.sizes(name)
        return None if sizes is None else len(sizes)

    def extent(self, name: str, axis: int) -> int | None:
        """Return the size of a dimension, None if it is not known."""
        sizes = self.sizes(name) or ()
        return sizes[axis] if axis < len(sizes) else None

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
    opset: int
    producers: dict[str, onnx.NodeProto]
    names: Names

    def dtype(self, name: str) -> np.dtype:
        """Return the dtype of a value, which inference found. Raises KeyError."""
        from onnx import helper

        return np.dtype(helper.tensor_dtype_to_np_dtype(self.types[name].tensor_type.elem_type))


def context_of(model: onnx.ModelProto) -> Context:
    """Return the types and constants of a model with inferred shapes."""
    constants = {tensor.name: tensor for tensor in model.graph.initializer}
    producers = {name: node for node in model.graph.node for name in node.output}
    return Context(value_types(model.graph), constants, operator_set(model.opset_import), producers, Names(model.graph))
