"""Describe a node of an old operator set to the rule that raises it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..node_builder import NodeBuilder
from ..shapes import static_shape

if TYPE_CHECKING:
    import onnx


@dataclass(frozen=True)
class Given:
    """Types and constants of values, as far as they are known before the model runs."""

    types: Mapping[str, onnx.TypeProto]
    constants: Mapping[str, onnx.TensorProto]


@dataclass(frozen=True)
class OldForm:
    """Node of set `version` to be given in set `wanted`; `build` takes the nodes that replace it."""

    node: onnx.NodeProto
    attributes: dict[str, Any]
    version: int
    wanted: int
    given: Given
    build: NodeBuilder

    def crosses(self, since: int) -> bool:
        """Tell whether set `since`, in which the operator changed, lies between both sets."""
        return self.version < since <= self.wanted

    def input(self, place: int) -> str:
        """Return the name of an input, "" if it is left out."""
        return self.node.input[place] if place < len(self.node.input) else ""

    def constant(self, name: str) -> np.ndarray | None:
        """Return the value of a constant, else None."""
        from onnx import numpy_helper

        return numpy_helper.to_array(self.given.constants[name]) if name in self.given.constants else None

    def rank(self, name: str) -> int | None:
        """Return the number of dimensions of a value, else None."""
        if name in self.given.constants:
            return len(self.given.constants[name].dims)
        kind = self.given.types.get(name)
        return len(kind.tensor_type.shape.dim) if kind is not None and kind.tensor_type.HasField("shape") else None

    def shape(self, name: str) -> tuple[int, ...] | None:
        """Return the static shape of a value, else None."""
        if name in self.given.constants:
            return tuple(self.given.constants[name].dims)
        return static_shape(self.given.types[name]) if name in self.given.types else None

    def dtype(self, name: str) -> np.dtype:
        """Return the dtype of a value; float32 if nothing is known of it."""
        from onnx import helper

        number = self.given.constants[name].data_type if name in self.given.constants else 0
        number = number or (self.given.types[name].tensor_type.elem_type if name in self.given.types else 0)
        return np.dtype(helper.tensor_dtype_to_np_dtype(number or 1))

    def keep(self, *inputs: str, op: str = "", **attributes: object) -> None:
        """Keep the node under its name, with these inputs and attributes, perhaps as another operator."""
        from onnx import helper

        node = helper.make_node(
            op or self.node.op_type, _trim(inputs), self.node.output, name=self.node.name, **attributes
        )
        self.build.nodes.append(node)


def _trim(inputs: tuple[str, ...]) -> list[str]:
    names = list(inputs)
    while names and not names[-1]:
        names.pop()
    return names


#: builds the new form, or nothing if the old one is valid; returns why there is none
Rule = Callable[[OldForm], "str | None"]
