"""Look up constants, dtypes and shapes in a model as a file has them: nothing folded, little inferred."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..canonical.read_onnx import all_nodes
from ..canonical.shapes import static_shape, value_types

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

        constants = {tensor.name: tensor for tensor in model.graph.initializer}
        types = value_types(model.graph)
        for node in all_nodes(model.graph):
            for each in node.attribute:
                if node.op_type == "Constant" and each.name == "value":
                    constants[node.output[0]] = each.t
                    types[node.output[0]] = helper.make_tensor_type_proto(each.t.data_type, list(each.t.dims))
        return cls(constants, types)

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
