"""Match a kernel of optional padding, one reduction and an optional epilogue, and build the parts of its schedules.

acc[…, 0:8] = start, then for each tap acc[…, 0:8] = max(acc[…, 0:8], data), then result[…] = epilogue(acc)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import wraps

from tvm import tirx
from tvm.ir import Expr, TensorLoad, Var
from tvm.tirx import BufferStore, For, IntImm, PrimFunc, Stmt

from ...targets import Machine
from ...tir.expressions import loads, replaced, with_loads
from ...tir.index_grid import NoMatch
from ...tir.loop_nests import are_axes, blocks_of, int64, kernel_of, simple
from ...tir.workspace import held_bytes
from .rule import Rule, RuleResult

_SERIAL, _VECTORIZED = 0, 2


def sum_rule(schedule: Callable[[PrimFunc, Machine], PrimFunc]) -> Rule:
    """Make a rule of a function that schedules a kernel, or raises NoMatch for one of another form."""

    @wraps(schedule)
    def rule(kernel: PrimFunc, _repackable: frozenset[int], machine: Machine) -> Iterator[RuleResult]:
        with suppress(NoMatch):
            scheduled = schedule(kernel, machine)
            yield RuleResult(scheduled, workspace=held_bytes(scheduled))

    return rule


def vector_loop(lanes: int, store: Callable[[Expr], Stmt], start: int = 0, *, whole: bool = True) -> Stmt:
    """Build a statement for each lane from `start` on, at once; one after the other for part of a vector."""
    lane = Var("lane", "int64")
    return For(lane, int64(0), int64(lanes), _VECTORIZED if whole else _SERIAL, store(lane + start))


def assign(acc: TensorLoad, value: Expr) -> BufferStore:
    """Store a value in the place of a load."""
    return BufferStore(acc.source, value, acc.indices)


def block_start(block: Expr, size: int, extent: int) -> Expr:
    """Return the first element of a block; the last block may overlap the one before."""
    if extent == size:
        return int64(0)
    return block * size if extent % size == 0 else tirx.min(block * size, int64(extent - size))


class FusedSum:
    """Match a kernel of optional `padding`, a `sum` over `axes`, and an element-wise epilogue, `last`, if any.

    The sum is written at axes, or constants.
    In its schedules, `loops` are the variables of the axes around accumulators, with `trips` each; `values` replace axes;
    `acc` holds accumulators, the last index by `lanes`. Raises NoMatch for another kernel.
    """

    acc: Var
    lanes: int

    def __init__(self, kernel: PrimFunc):
        self.original = kernel
        blocks = blocks_of(kernel)
        places = [number for number, block in enumerate(blocks) if block.init is not None]
        if len(places) != 1 or len(blocks) > 3 or places[0] > 1 or len(blocks) - places[0] > 2:
            raise NoMatch("more than padding, a sum and an epilogue")
        self.padding = blocks[0] if places[0] == 1 else None
        self.sum, self.last = blocks[places[0]], blocks[-1] if len(blocks) > places[0] + 1 else None
        self.result, self.dtype = kernel.params[-1], str(self.sum.body.buffer.ty.dtype)
        self.axes = {axis.var: int(axis.dom.extent) for axis in self.sum.iter_vars}
        indices = self.sum.body.indices
        self.written = [own if own in self.axes else plain for own, plain in zip(indices, simple(self.sum, indices))]
        if not all(index in self.axes or isinstance(index, IntImm) for index in self.written):
            raise NoMatch("the result is not indexed by axes")
        if self.last is None:
            if not self.sum.body.buffer.same_as(self.result):
                raise NoMatch("the sum does not write the result")
            return
        read = [load.indices for load in loads(self.last.body.value) if load.source.same_as(self.sum.body.buffer)]
        if any(int(axis.iter_type) != 0 for axis in self.last.iter_vars) or not all(
            are_axes(self.last, simple(self.last, each)) for each in [self.last.body.indices, *read]
        ):
            raise NoMatch("the epilogue is not element-wise")

    def loop_over(self, axes: Iterable[Expr]) -> None:
        """Make loops of the axes around accumulators; axes of extent 1 become 0."""
        self.trips = {axis: self.axes[axis] for axis in axes if isinstance(axis, Var) and self.axes[axis] > 1}
        self.loops = {axis: Var("plane", "int64") for axis in self.trips}
        self.values: dict[Var, Expr] = {axis: int64(0) for axis in self.axes if self.axes[axis] == 1} | self.loops

    def epilogue(self, acc: Expr, indices: list[Expr]) -> Expr:
        """Build the result element at `indices` from its accumulator."""
        if self.last is None:
            return acc
        value = with_loads(self.last.body.value, self.sum.body.buffer, acc)
        return replaced(value, dict(zip((axis.var for axis in self.last.iter_vars), indices)))

    def finished(self, acc: Expr, indices: list[Expr]) -> BufferStore:
        """Store the result element at `indices` of its accumulator."""
        return BufferStore(self.result, self.epilogue(acc, indices), indices)

    @property
    def read_late(self) -> list[TensorLoad]:
        """List the epilogue's loads outside the sum."""
        late = [] if self.last is None else loads(self.last.body.value)
        return [load for load in late if not load.source.same_as(self.sum.body.buffer)]

    def kernel_around(self, stmt: Stmt, own: Sequence[Var], before: Sequence[Stmt] = ()) -> PrimFunc:
        """Build the kernel of a statement, the loops around it, and statements `before` them, with `own` buffers."""
        for axis, var in reversed(self.loops.items()):
            stmt = For(var, int64(0), int64(self.trips[axis]), _SERIAL, stmt)
        return kernel_of(self.original.params, [*before, stmt], own, self.original.attrs)

    def vector(self, place: Sequence[int], store: Callable[[Expr, TensorLoad], Stmt]) -> Stmt:
        """Build a statement for each lane of the accumulators at a place: of the lane and its accumulator."""

        def stored(lane: Expr) -> Stmt:
            return store(lane, tirx.BufferLoad(self.acc, [*map(int64, place), lane]))

        return vector_loop(self.lanes, stored)
