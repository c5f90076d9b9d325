"""Name weights after the initializers of the ONNX file that they come from, for people: `explain`, `compare`, the gate.

file                        canonical model       weight of a kernel
w ────────────────────────► w ──────────────────► w            the same bytes, or packed later
w, scale ─► BatchNorm ────► w, scale ───────────► w            folded: as many elements
t ─► Transpose ───────────► u ──────────────────► t            folded by the import
                                                  relu/constant   made for a node, of no initializer
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ...program import Program, Weight
from ...program.weight_readers import nodes_of_weights
from ...tir.tensor_values import array_digest

if TYPE_CHECKING:
    import onnx

#: operators whose results do not depend on the values of their operands
_SHAPES = frozenset({"Shape", "Size"})


def name_weights(
    program: Program, weights: Sequence[np.ndarray], model: onnx.ModelProto, given: onnx.ModelProto | None = None
) -> Program:
    """Name the `weights` of a `program` that is not scheduled yet, and tell the initializers behind each.

    `model` is the canonical model it was lowered from, `given` that of the file, None for the same. A weight with the bytes of an
    initializer has its name. Any other comes from initializers of the nodes that read it: those of as many elements, else those
    of the same rank that have as many together, else all that are not stored as they are.
    """
    sources = _Sources(model, {weight.digest for weight in program.weights})
    origin = _origins(model, model if given is None else given)
    nodes = nodes_of_weights(program)
    behind = [sources.of(weight, weights[n], nodes.get(n, ())) for n, weight in enumerate(program.weights)]
    behind = sources.completed(behind, weights)
    taken, found = set[str](), []
    for number, (weight, names) in enumerate(zip(program.weights, behind, strict=True)):
        initializers = tuple(dict.fromkeys(name for each in names for name in origin(each)))
        readers = nodes.get(number, ())
        constant = names[0] if names else f"{readers[-1]}/constant" if readers else weight.name
        name = _unused_name(initializers[0] if initializers else constant, taken)
        taken.add(name)
        found.append(replace(weight, name=name, initializers=initializers))
    return replace(program, weights=tuple(found))


class _Sources:
    """Initializers of a canonical model, by node and by content."""

    def __init__(self, model: onnx.ModelProto, stored: set[str]):
        self._tensors = {tensor.name: tensor for tensor in model.graph.initializer}
        self._forms: dict[str, tuple[int, int]] = {}
        self._changed: set[str] = set()
        self._of_content: Mapping[str, list[str]] = defaultdict(list)
        for tensor in model.graph.initializer:
            array = _array(tensor)
            digest = array_digest(array)
            self._forms[tensor.name] = array.size, array.ndim
            self._of_content[digest].append(tensor.name)
            if digest not in stored:
                self._changed.add(tensor.name)
        self._read_by = {
            node.name: tuple(dict.fromkeys(name for name in node.input if name in self._forms))
            for node in model.graph.node
        }

    def of(self, weight: Weight, array: np.ndarray, nodes: Iterable[str]) -> tuple[str, ...]:
        """Return the initializers behind a weight that `nodes` read; none for a constant made on the way."""
        read = tuple(dict.fromkeys(name for node in nodes for name in self._read_by.get(node, ())))
        same = self._of_content.get(weight.digest, [])
        if exact := tuple(name for name in same if name in read) or (tuple(same[:1]) if array.size > 1 else ()):
            return exact
        changed = tuple(name for name in read if name in self._changed)
        if alike := tuple(name for name in changed if self._forms[name][0] == array.size):
            values = _values(array) if len(alike) > 1 else ""
            return tuple(name for name in alike if _values(_array(self._tensors[name])) == values)[:1] or alike
        ranked = tuple(name for name in changed if self._forms[name][1] == array.ndim)
        if sum(self._forms[name][0] for name in ranked) == array.size:
            return ranked
        return changed if array.size > 1 else ()

    def completed(self, behind: Sequence[tuple[str, ...]], arrays: Sequence[np.ndarray]) -> list[tuple[str, ...]]:
        """Add initializers to weights with more elements than theirs, if others fill the rest exactly.

        Operators that are computed together have one weight, which counts as that of the first one's node.
        """
        found = list(behind)
        for number, (names, array) in enumerate(zip(behind, arrays, strict=True)):
            left = array.size - sum(self._forms[name][0] for name in names)
            more: list[str] = []
            for name in (
                sorted(self._changed.difference(*found), key=list(self._forms).index) if names and left > 0 else ()
            ):
                size, rank = self._forms[name]
                if rank == array.ndim and size <= left:
                    more.append(name)
                    left -= size
            if more and left == 0:
                found[number] = (*names, *more)
        return found


def _origins(model: onnx.ModelProto, given: onnx.ModelProto) -> Callable[[str], tuple[str, ...]]:
    """Return a function from constants of the canonical `model` to the initializers they are computed from.

    A constant that the import made under a name of its own is the first initializer of the same values, in any order. Equal
    initializers go together: the import keeps one of them.
    """
    own = {tensor.name: tensor for tensor in given.graph.initializer}
    makers = {name: node for node in given.graph.node for name in node.output if name}
    renamed = {
        tensor.name: tensor for tensor in model.graph.initializer if tensor.name not in own.keys() | makers.keys()
    }
    of_content: dict[str, str] = {}
    equal: dict[str, list[str]] = {}
    for tensor in own.values():
        array = _array(tensor)
        if not array.dtype.hasobject:
            equal.setdefault(f"{array.dtype} {array_digest(array)}", []).append(tensor.name)
        if renamed:
            of_content.setdefault(_values(array), tensor.name)
    alike = {name: names for names in equal.values() for name in names}

    def origin(name: str) -> tuple[str, ...]:
        if name in renamed:
            same = of_content.get(_values(_array(renamed[name])))
            return () if same is None else (same,)
        found, waiting, seen = dict[str, None](), [name], set[str]()
        while waiting:
            each = waiting.pop()
            if each in seen:
                continue
            seen.add(each)
            node = makers.get(each)
            if each in own or (node is not None and node.op_type == "Constant"):
                found.update(dict.fromkeys(alike.get(each, [each])))
            elif node is not None and node.op_type not in _SHAPES:
                waiting += reversed(node.input)
        return tuple(found)

    return origin


def _array(tensor: onnx.TensorProto) -> np.ndarray:
    from onnx import numpy_helper

    return numpy_helper.to_array(tensor)


def _values(array: np.ndarray) -> str:
    """Return a digest of the dtype and the values of an array, whatever their order; empty for texts."""
    if array.dtype.hasobject or array.itemsize > 8:
        return ""
    values = np.sort(np.ascontiguousarray(array).reshape(-1).view(f"u{array.itemsize}"))
    return f"{array.dtype} {array_digest(values)}"


def _unused_name(name: str, taken: set[str]) -> str:
    """Append a number to a name that is taken: `w#2` is the second weight from w."""
    if name not in taken:
        return name
    number = 2
    while f"{name}#{number}" in taken:
        number += 1
    return f"{name}#{number}"
