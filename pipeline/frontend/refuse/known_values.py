"""Look up constants, dtypes and shapes in a model as a file has them: nothing folded, little inferred."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..canonical.shapes import constant_tensors, static_shape, value_types

if TYPE_CHECKING:
    import onnx


@dataclass(frozen=True)
class KnownValues:
    """Constants and types by name; results of Constant nodes are among them."""

    constants: dict[str, onnx.TensorProto]
    types: dict[str, onnx.TypeProto]

    @classmethod
    def of(cls, model: onnx.ModelProto) -> KnownValues:
        """Collect the constants and types of a model, its subgraphs included."""
        from onnx import helper

        constants = constant_tensors(model.graph, inside=True)
        kinds = {name: helper.make_tensor_type_proto(each.data_type, [*each.dims]) for name, each in constants.items()}
        return cls(constants, value_types(model.graph) | kinds)

    def value(self, name: str) -> np.ndarray | None:
        """Return a constant, else None."""
        from onnx import numpy_helper

        return numpy_helper.to_array(self.constants[name]) if name in self.constants else None

    def dtype(self, name: str) -> int:
        """Return ONNX's number of a dtype, 0 if it is not known."""
        return int(self.types[name].tensor_type.elem_type) if name in self.types else 0

    def shape(self, name: str) -> tuple[int, ...] | None:
        """Return a static shape, else None."""
        return static_shape(self.types[name]) if name in self.types else None
