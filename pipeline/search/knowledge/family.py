"""Classify a graph into a family of architectures, from operators and topology alone.

Verma et al. (2022) choose passes per family by hand, for four families; here the family follows from the graph.

A *layer* is a convolution or product that reads a weight; layers that read the same weights count once, so an unrolled
recurrence counts as one step. *Light* operators are all others. Rules, the first that holds:

1. no layer and no attention: mixed
2. attention (a softmax of a product, read by another product of computed values) and no recurrence: transformer, or
   mixed if a quarter of the layers or more are convolutions
3. recurrence (a kernel with a loop over steps; a layer that reads, by way of others, an earlier use of its weights; or a
   gated cell, see `_cells`) and no attention: recurrent, or mixed as above; attention and recurrence: mixed
4. less than a quarter of the layers are convolutions: dense
5. convolutions that no layer follows are on planes of two sizes or more: detector
6. a value that was enlarged meets one that was not, both results of layers: u-shaped
7. a quarter of the convolutions or more, not counting those on single pixels, are depthwise: mobile
8. at least one addition of two computed values of one shape for eight such convolutions: residual
9. plain: convolutions one after the other, or joined by concatenation
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import reduce
from operator import or_

from .features import Operation, OperatorGraph

RESIDUAL, MOBILE, PLAIN, DETECTOR, U_SHAPED = "residual", "mobile", "plain", "detector", "u-shaped"
TRANSFORMER, RECURRENT, DENSE, MIXED = "transformer", "recurrent", "dense", "mixed"
FAMILIES = (RESIDUAL, MOBILE, PLAIN, DETECTOR, U_SHAPED, TRANSFORMER, RECURRENT, DENSE, MIXED)

#: one part in QUARTER of the layers, or of the convolutions, makes a trait
QUARTER = 4
#: convolutions for each addition of a residual network
PER_SHORTCUT = 8
#: growth of each side of a plane from which on it was enlarged; padding grows planes by less
ENLARGED = 1.5

_HEAVY = ("convolution", "matmul")
#: operators that rearrange elements between planes, and so change shapes without enlarging anything
_REARRANGES = ("reshape", "permute_dims", "flatten", "expand_dims", "squeeze", "broadcast_to", "concat", "pad")


def family_of(graph: OperatorGraph) -> str:
    """Return the family of a graph, one of FAMILIES."""
    found = _Structure(graph)
    layers = found.layers()
    convolutions = sum(each.kind == "convolution" for each in layers)
    convolutional = convolutions * QUARTER >= len(layers) > 0
    attention, recurrence = found.has_attention(), found.has_recurrence()
    if attention or recurrence:
        one_kind = not (attention and recurrence) and not (convolutional and convolutions)
        return MIXED if not one_kind else TRANSFORMER if attention else RECURRENT
    if not layers:
        return MIXED
    if not convolutional:
        return DENSE
    if found.scales() > 1:
        return DETECTOR
    if found.has_skips_around_enlargements():
        return U_SHAPED
    return found.by_blocks()


class _Structure:
    """Traits of a graph. Sets of operations are bit sets over their numbers, kept per value."""

    def __init__(self, graph: OperatorGraph):
        self._inputs = len(graph.inputs)
        self._operations = graph.operations
        values = self._inputs + len(graph.operations)
        #: whether a value depends on an input
        self._computed = [True] * self._inputs + [False] * len(graph.operations)
        #: heavy operations a value depends on; the nearest of them; operations that enlarged it
        self._before, self._nearest, self._enlarged = [0] * values, [0] * values, [0] * values
        #: products, and those of two computed values
        self._products = self._joining = 0
        for number, each in enumerate(graph.operations):
            value, bit = self._inputs + number, 1 << number
            self._computed[value] = any(self._computed[read] for read in each.reads)
            self._before[value] = _union(self._before, each.reads)
            self._enlarged[value] = _union(self._enlarged, each.reads)
            self._nearest[value] = _union(self._nearest, each.reads)
            if self._enlarges(each) and self._before[value]:
                self._enlarged[value] |= bit
            if each.kind in _HEAVY and self._computed[value]:
                self._before[value] |= bit
                self._nearest[value] = bit
            if each.kind == "matmul":
                self._products |= bit
                self._joining |= bit if self._joins(each) else 0

    def layers(self) -> list[Operation]:
        """Return the layers, each once for all uses of its weights."""
        found: dict[object, Operation] = {}
        for number, each in self._heavy():
            weights = self._weights(each)
            if weights or each.kind == "convolution":
                found.setdefault(weights or number, each)
        return list(found.values())

    def has_attention(self) -> bool:
        return any(
            each.operator.startswith("attention")
            or (each.kind == "matmul" and self._joins(each) and any(self._is_weighting(read) for read in each.reads))
            for each in self._operations
        )

    def has_recurrence(self) -> bool:
        kernels = any(each.operator == "recurrent" for each in self._operations)
        return kernels or self._reuses_weights() or any(self._cells())

    def scales(self) -> int:
        """Count the sizes of planes of the convolutions that no layer follows; single pixels do not count."""
        followed = _union(self._before, (read for _, each in self._heavy() for read in each.reads))
        return len({
            each.shape[2:]
            for number, each in self._heavy()
            if each.kind == "convolution" and _planar(each) and not followed >> number & 1
        })  # fmt: skip

    def has_skips_around_enlargements(self) -> bool:
        """Return whether a concatenation or element-wise operator joins an enlarged value and one of a layer."""
        for each in self._operations:
            if each.kind not in ("concat", "element-wise"):
                continue
            reads = [read for read in set(each.reads) if self._before[read]]
            every = reduce(or_, (self._enlarged[read] for read in reads), 0)
            if any(every & ~self._enlarged[read] for read in reads):
                return True
        return False

    def by_blocks(self) -> str:
        """Return the family of a convolutional network that has none of the shapes above."""
        convolutions = [each for _, each in self._heavy() if each.kind == "convolution" and _planar(each)]
        if sum(each.depthwise for each in convolutions) * QUARTER >= len(convolutions):
            return MOBILE
        shortcuts = sum(each.operator == "add" and self._is_shortcut(each) for each in self._operations)
        return RESIDUAL if shortcuts * PER_SHORTCUT >= len(convolutions) else PLAIN

    def _heavy(self) -> Iterator[tuple[int, Operation]]:
        for number, each in enumerate(self._operations):
            if each.kind in _HEAVY and self._computed[self._inputs + number]:
                yield number, each

    def _weights(self, each: Operation) -> frozenset[object]:
        """Return the weights of an operation, and the constant values it reads."""
        return frozenset((*each.weights, *(f"value {read}" for read in each.reads if not self._computed[read])))

    def _joins(self, each: Operation) -> bool:
        return sum(self._computed[read] for read in each.reads) > 1

    def _is_weighting(self, value: int) -> bool:
        """Return whether a value is a softmax of a product of computed values, by way of light operators."""
        found = self._back_to(value, ("softmax",))
        return found is not None and bool(self._nearest[self._inputs + found] & self._joining)

    def _reuses_weights(self) -> bool:
        """Return whether a layer reads, by way of others, the result of a layer of the same weights."""
        uses: dict[frozenset[object], int] = {}
        for number, each in self._heavy():
            weights = self._weights(each)
            if weights and uses.get(weights, 0) & _union(self._before, each.reads):
                return True
            uses[weights] = uses.get(weights, 0) | 1 << number
        return False

    def _cells(self) -> Iterator[bool]:
        """Return for each addition whether it is a step of a gated cell of products (LSTM, GRU).

        c' = sigmoid · c + sigmoid · tanh             h' = sigmoid · h + (1 − sigmoid) · tanh
        """
        for each in self._operations:
            if each.operator != "add" or len(each.reads) != 2:
                continue
            gates = [gate for read in each.reads if (gate := self._operation(read)) is not None]
            if len(gates) == 2 and all(gate.operator == "multiply" and self._is_gated(gate) for gate in gates):
                yield any(self._back_to(read, ("tanh",)) is not None for gate in gates for read in gate.reads)

    def _is_gated(self, product: Operation) -> bool:
        """Return whether an operand is a sigmoid whose nearest layers are products."""
        found = [self._back_to(read, ("sigmoid",)) for read in product.reads]
        near = [self._nearest[self._inputs + number] for number in found if number is not None]
        return any(each and not each & ~self._products for each in near)

    def _back_to(self, value: int, operators: tuple[str, ...]) -> int | None:
        """Return the operation of one of `operators` that a value comes from by light operators of one operand."""
        while (each := self._operation(value)) is not None:
            if each.operator in operators:
                return value - self._inputs
            computed = [read for read in set(each.reads) if self._computed[read]]
            if each.kind not in ("element-wise", "move") or len(computed) != 1:
                return None
            value = computed[0]
        return None

    def _operation(self, value: int) -> Operation | None:
        return self._operations[value - self._inputs] if value >= self._inputs else None

    def _enlarges(self, each: Operation) -> bool:
        sources = [self._operation(read) for read in set(each.reads) if self._computed[read]]
        if each.operator in _REARRANGES or len(sources) != 1 or sources[0] is None:
            return False
        before, after = sources[0].shape[2:], each.shape[2:]
        return (
            len(before) == len(after) > 0
            and max(before) > 1
            and all(new >= ENLARGED * old or new == old == 1 for old, new in zip(before, after))
        )

    def _is_shortcut(self, each: Operation) -> bool:
        reads = set(each.reads)
        same = all((source := self._operation(read)) is not None and source.shape == each.shape for read in reads)
        return len(reads) > 1 and same and len({self._before[read] for read in reads}) > 1


def _planar(each: Operation) -> bool:
    """Return whether a convolution's result has planes of more than one pixel."""
    return max(each.shape[2:], default=1) > 1


def _union(sets: list[int], values: Iterable[int]) -> int:
    return reduce(or_, (sets[value] for value in values), 0)
