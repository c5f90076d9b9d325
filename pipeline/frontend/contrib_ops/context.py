"""Look up constants and ranks around a vendor's node, as far as they are known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..canonical.node_builder import NodeBuilder

if TYPE_CHECKING:
    import onnx


Attributes = dict[str, Any]


@dataclass(frozen=True)
class Surroundings:
    """Hold constants by name, of Constant nodes too, inferred types, and the values that are `read`."""

    constants: dict[str, onnx.TensorProto]
    types: dict[str, onnx.TypeProto]
    read: frozenset[str] = frozenset()

    def constant(self, name: str) -> np.ndarray | None:
        """Return a constant, else None."""
        from onnx import numpy_helper

        return numpy_helper.to_array(self.constants[name]) if name in self.constants else None

    def dtype(self, name: str) -> np.dtype:
        """Return the dtype of a value; float32 if it is not known."""
        from onnx import helper

        kind = self.types.get(name)
        number = (
            self.constants[name].data_type
            if name in self.constants
            else kind.tensor_type.elem_type
            if kind is not None
            else 0
        )
        return np.dtype(helper.tensor_dtype_to_np_dtype(number)) if number else np.dtype(np.float32)

    def extent(self, name: str, axis: int) -> int | None:
        """Return the size of a dimension, None if it is not known."""
        if name in self.constants:
            return self.constants[name].dims[axis]
        if (self.rank(name) or 0) <= axis:
            return None
        size = self.types[name].tensor_type.shape.dim[axis]
        return size.dim_value if size.HasField("dim_value") else None

    def rank(self, name: str) -> int | None:
        """Return the number of dimensions of a value, None if it is not known."""
        if name in self.constants:
            return len(self.constants[name].dims)
        kind = self.types.get(name)
        if kind is None or not kind.tensor_type.HasField("shape"):
            return None
        return len(kind.tensor_type.shape.dim)


#: builds the nodes that replace a node; returns the reason if its form has no equal, or is not known yet
Rule = Callable[["onnx.NodeProto", Attributes, Surroundings, NodeBuilder], "str | None"]


def inputs_of(node: onnx.NodeProto, count: int) -> list[str]:
    """Return the names of the first `count` inputs, "" for absent ones."""
    return [*node.input, *[""] * count][:count]


def dequantised(build: NodeBuilder, tensor: str, scale: str, zero: str, **attributes: Any) -> str:
    """Build a DequantizeLinear; an absent zero point is 0."""
    return build.node("DequantizeLinear", tensor, scale, *([zero] if zero else []), **attributes)


def quantised(build: NodeBuilder, value: str, scale: str, zero: str, result: str) -> str:
    """Build a QuantizeLinear; an absent zero point is 0 of uint8, as in ONNX."""
    return build.node("QuantizeLinear", value, scale, *([zero] if zero else []), result=result)
