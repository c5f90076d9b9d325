"""Replace sequences of constant length by their elements: a compiled library holds tensors only.

SplitToSequence ─► SequenceInsert ─► SequenceAt      ──►      Split ─► the element at that place
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from ..graph_context import NodeView, context_of
from ..node_builder import NodeBuilder, spliced, stem_of
from ..read_onnx import refuse

if TYPE_CHECKING:
    import onnx

MAKERS = frozenset({"SequenceConstruct", "SequenceEmpty", "SplitToSequence"})


def replace_sequences(model: onnx.ModelProto) -> onnx.ModelProto:
    """Replace the sequences of the main graph of `model`, whose constants are folded and shapes inferred.

    A sequence that depends on the data stays, for its refusal. Raises ModelError for a place that a sequence lacks.
    """
    if not any(node.op_type in MAKERS for node in model.graph.node):
        return model
    context, sequences, replaced = context_of(model), dict[str, list[str]](), dict[int, NodeBuilder]()
    for index, node in enumerate(model.graph.node):
        view, build = NodeView(node, context), NodeBuilder(stem_of(node, index), context.names)
        given = [] if node.op_type in MAKERS else sequences.get(view.name(0))
        made = (
            _SEQUENCES[node.op_type](view, build, given) if node.op_type in _SEQUENCES and given is not None else None
        )
        if made is not None:
            sequences[view.result] = made
        if made is not None or build.nodes:
            replaced[index] = build
    return spliced(model, replaced)


def _split(node: NodeView, build: NodeBuilder, elements: list[str]) -> list[str] | None:
    shape, given = node.shape(0), node.constant(1) if node.name(1) else np.asarray(1)
    if shape is None or given is None:
        return None
    axis = int(node.get("axis", 0)) % len(shape)
    sizes = [int(each) for each in given.reshape(-1)]
    if given.ndim == 0:
        whole, rest = divmod(shape[axis], max(sizes[0], 1))
        sizes = sizes * whole + [rest] * bool(rest)
    parts = build.many("Split", [node.input[0], build.integers(*sizes)], len(sizes), axis=axis)
    if node.name(1) or node.get("keepdims", 1):
        return parts
    return [build.node("Squeeze", part, build.integers(axis)) for part in parts]


def _insert(node: NodeView, build: NodeBuilder, elements: list[str]) -> list[str] | None:
    place = _place(node, 2, elements, len(elements), len(elements))
    return None if place is None else [*elements[:place], node.input[1], *elements[place:]]


def _erase(node: NodeView, build: NodeBuilder, elements: list[str]) -> list[str] | None:
    place = _place(node, 1, elements, len(elements) - 1, len(elements) - 1)
    return None if place is None else [*elements[:place], *elements[place + 1 :]]


def _at(node: NodeView, build: NodeBuilder, elements: list[str]) -> None:
    place = _place(node, 1, elements, len(elements) - 1, 0)
    if place is not None:
        build.node("Identity", elements[place], result=node.result)


def _length(node: NodeView, build: NodeBuilder, elements: list[str]) -> None:
    build.node("Identity", build.number(len(elements), np.int64), result=node.result)


def _concatenate(node: NodeView, build: NodeBuilder, elements: list[str]) -> None:
    axis = int(node.attributes["axis"])
    if node.get("new_axis", 0):
        elements = [build.node("Unsqueeze", each, build.integers(axis)) for each in elements]
    if elements:
        build.node("Concat", *elements, result=node.result, axis=axis)


def _place(node: NodeView, operand: int, elements: list[str], last: int, default: int) -> int | None:
    """Return the place that an operand gives, counted from the front; None if it depends on the data."""
    given = node.constant(operand) if node.name(operand) else np.asarray(default)
    if given is None:
        return None
    place, length = int(given.reshape(-1)[0]), len(elements)
    place += length if place < 0 else 0
    if not 0 <= place <= last:
        refuse(node.proto, f"takes place {place} of a sequence of {length}", "Check the model, and export it again.")
    return place


#: build what reads the elements of a sequence; return those of the sequence made, None for a tensor or what depends on the data
_SEQUENCES: dict[str, Callable[[NodeView, NodeBuilder, list[str]], list[str] | None]] = {
    "ConcatFromSequence": _concatenate,
    "Identity": lambda node, build, elements: elements,
    "SequenceAt": _at,
    "SequenceConstruct": lambda node, build, elements: node.input,
    "SequenceEmpty": lambda node, build, elements: [],
    "SequenceErase": _erase,
    "SequenceInsert": _insert,
    "SequenceLength": _length,
    "SplitToSequence": _split,
}
