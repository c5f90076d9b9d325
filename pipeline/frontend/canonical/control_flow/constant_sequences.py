"""Replace sequences of constant length by their elements: a compiled library holds tensors only.

SplitToSequence ─► SequenceInsert ─► SequenceAt      ──►      Split ─► the element at that place
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ....errors import ModelError
from ..node_builder import Names, NodeBuilder, attributes_of, spliced, stem_of
from ..read_onnx import node_title
from ..shapes import static_shape, value_types

if TYPE_CHECKING:
    import onnx

MAKERS = frozenset({"SequenceConstruct", "SequenceEmpty", "SplitToSequence"})


def replace_sequences(model: onnx.ModelProto) -> onnx.ModelProto:
    """Replace the sequences of the main graph of `model`, whose constants are folded and shapes inferred.

    A sequence that depends on the data stays, for its refusal. Raises ModelError for a place that a sequence lacks.
    """
    if not any(node.op_type in MAKERS for node in model.graph.node):
        return model
    from onnx import numpy_helper

    constants = {tensor.name: tensor for tensor in model.graph.initializer}
    shapes = {name: static_shape(kind) for name, kind in value_types(model.graph).items()}

    def constant(name: str) -> np.ndarray | None:
        return numpy_helper.to_array(constants[name]) if name in constants else None

    sequences: dict[str, list[str]] = {}
    made, names = dict[int, NodeBuilder](), Names(model.graph)
    for index, node in enumerate(model.graph.node):
        build = NodeBuilder(stem_of(node, index), names)
        if (
            node.op_type in _SEQUENCES
            and _Rewriter(node, attributes_of(node), build, sequences, constant, shapes).rewrite()
        ):
            made[index] = build
    return spliced(model, made)


class _Rewriter:
    """Rewrite one node; its sequences are entered in `sequences`, as names of their elements."""

    def __init__(
        self, node: onnx.NodeProto, attributes: dict[str, Any], build: NodeBuilder, sequences: dict[str, list[str]],
        constant: Callable[[str], np.ndarray | None], shapes: dict[str, tuple[int, ...] | None],
    ):  # fmt: skip
        self.node, self.attributes, self.build, self.sequences, self.shapes = node, attributes, build, sequences, shapes
        self.constant = constant

    def rewrite(self) -> bool:
        """Rewrite the node; tell whether it can be."""
        if self.node.op_type in MAKERS:
            elements = _SEQUENCES[self.node.op_type](self)
        else:
            if self.node.input[0] not in self.sequences:
                return False
            elements = _SEQUENCES[self.node.op_type](self)
        if isinstance(elements, list):
            self.sequences[self.node.output[0]] = elements
        return elements is not None

    def split(self) -> list[str] | None:
        x, sizes_name = [*self.node.input, ""][:2]
        shape, given = self.shapes.get(x), self.constant(sizes_name) if sizes_name else np.asarray(1)
        if shape is None or given is None:
            return None
        axis = int(self.attributes.get("axis", 0)) % len(shape)
        sizes = [int(each) for each in given.reshape(-1)]
        if given.ndim == 0:
            whole, rest = divmod(shape[axis], max(sizes[0], 1))
            sizes = sizes * whole + [rest] * bool(rest)
        parts = self.build.many("Split", [x, self.build.integers(*sizes)], len(sizes), axis=axis)
        if sizes_name or self.attributes.get("keepdims", 1):
            return parts
        return [self.build.node("Squeeze", part, self.build.integers(axis)) for part in parts]

    def insert(self) -> list[str] | None:
        elements = self.sequences[self.node.input[0]]
        place = self._place(2, len(elements) + 1, len(elements))
        return None if place is None else [*elements[:place], self.node.input[1], *elements[place:]]

    def erase(self) -> list[str] | None:
        elements = self.sequences[self.node.input[0]]
        place = self._place(1, len(elements), len(elements) - 1)
        return None if place is None else [*elements[:place], *elements[place + 1 :]]

    def at(self) -> bool | None:
        elements = self.sequences[self.node.input[0]]
        place = self._place(1, len(elements), 0)
        if place is None:
            return None
        self.build.node("Identity", elements[place], result=self.node.output[0])
        return True

    def length(self) -> bool:
        count = self.build.number(len(self.sequences[self.node.input[0]]), np.int64)
        self.build.node("Identity", count, result=self.node.output[0])
        return True

    def concatenate(self) -> bool | None:
        elements, axis = self.sequences[self.node.input[0]], int(self.attributes["axis"])
        if not elements:
            return None
        if self.attributes.get("new_axis", 0):
            elements = [self.build.node("Unsqueeze", each, self.build.integers(axis)) for each in elements]
        self.build.node("Concat", *elements, result=self.node.output[0], axis=axis)
        return True

    def _place(self, operand: int, count: int, default: int) -> int | None:
        """Return the place that an operand gives, counted from the front; None if it depends on the data."""
        if len(self.node.input) <= operand or not self.node.input[operand]:
            place = default
        else:
            given = self.constant(self.node.input[operand])
            if given is None:
                return None
            place = int(given.reshape(-1)[0])
        length = len(self.sequences[self.node.input[0]])
        place += length if place < 0 else 0
        if not 0 <= place < count:
            raise ModelError(
                f"The {node_title(self.node)} takes place {place} of a sequence of {length}.",
                "Check the model, and export it again.",
            )
        return place


_SEQUENCES: dict[str, Callable[[_Rewriter], list[str] | bool | None]] = {
    "ConcatFromSequence": _Rewriter.concatenate,
    "Identity": lambda rewriter: list(rewriter.sequences[rewriter.node.input[0]]),
    "SequenceAt": _Rewriter.at,
    "SequenceConstruct": lambda rewriter: list(rewriter.node.input),
    "SequenceEmpty": lambda rewriter: [],
    "SequenceErase": _Rewriter.erase,
    "SequenceInsert": _Rewriter.insert,
    "SequenceLength": _Rewriter.length,
    "SplitToSequence": _Rewriter.split,
}
