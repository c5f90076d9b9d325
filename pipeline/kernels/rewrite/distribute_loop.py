"""Distribute the loop of a Scan: run the products that no state changes for many trips at once, before the others.

    for t in 0 … 49:                         for b in 0 … 4:
      s    = x[t] · W                          s[j] = x[10 b + j] · W         j in 0 … 9: W is read once
      h    = tanh(s + h · R)         ──►       for t in 0 … 9:
      y[t] = h                                   h = tanh(s[t] + h · R)
                                                 y[10 b + t] = h

Strip-mining, then loop distribution (Allen and Kennedy, Optimizing Compilers for Modern Architectures, 2001, ch. 5 and 6).
Exact: each element is computed by the same operations. Legal for a loop nest that reads slices of this trip, values that
no trip changes, and results of such nests; those worth it sum over an operand that all trips share.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tvm.ir import Expr, Range, Var
from tvm.s_tir import SBlock, SBlockRealize
from tvm.tirx import BufferStore, For, IterVar, PrimFunc, Stmt

from ...frontend.relax.loop_kernel import ITERATIONS, STOPPING, Place, copy_stage, loop_of, stage_block
from ...support.divisors import divisors
from ...tir.expressions import collect, loads, replaced, uses
from ...tir.index_grid import NoMatch
from ...tir.loop_nests import int64, kernel_of, move_accesses, reshaped, sequence, statements, with_fields
from ...tir.memoise import memoise_by_structure
from ..lower.loop_stages import accesses_of, direction_of, is_loop_body, loop_parts, slice_index
from ..lower.loops import can_take_apart
from .distributable_nests import Nest, nests_first, sources_of

_SERIAL, _SPATIAL = 0, 0


class Distributed(NamedTuple):
    """Kernel with distributed loops, and the new shapes of its parameters by number, where they differ."""

    kernel: PrimFunc
    shapes: dict[int, tuple[int, ...]]


@memoise_by_structure
def distribute_loop(kernel: PrimFunc, trips: int) -> Distributed | None:
    """Distribute the loops of a kernel, `trips` trips at once at most, or all if 0; None if that changes nothing."""
    rewriter = _Rewriter(trips)
    try:
        rewriter.plan(kernel.body.block)
        if not rewriter.loops or (
            STOPPING in kernel.attrs and not all(each.is_whole for each in rewriter.loops.values())
        ):
            return None
        stmt, own = rewriter.rewrite(kernel.body.block)
    except NoMatch:
        return None
    params = [rewriter.buffers.get(each, each) for each in kernel.params]
    made = kernel_of(params, [stmt], own, kernel.attrs).with_attr(ITERATIONS, int(statements(stmt)[-1].extent))
    shapes = {
        number: tuple(map(int, new.ty.shape))
        for number, (old, new) in enumerate(zip(kernel.params, params))
        if not new.same_as(old)
    }
    return Distributed(made, shapes) if can_take_apart(made) else None


@dataclass(frozen=True)
class _Loop:
    """Loop to distribute: the `number` of its trips, `trips`, those `at_once`, and the nests that run `first`.

    `directions` are those in which nests read slices, 1 or -1, by the values they write. With fewer trips at once than
    all, `block` and `inside` are the new numbers, of a block of trips and of a trip in it.
    """

    number: Var
    trips: int
    at_once: int
    first: frozenset[Nest]
    directions: Mapping[Var, int]
    block: Var = field(default_factory=lambda: Var("v_b", "int64"))
    inside: Var = field(default_factory=lambda: Var("v_t", "int64"))

    @property
    def is_whole(self) -> bool:
        """Return whether all trips run at once: sequences keep their shapes."""
        return self.at_once == self.trips

    def slice_at(self, direction: int, inside: Expr | None = None) -> list[Expr]:
        """Return the indices of a slice in this direction; `inside` is its place in the memory of a block."""
        last = None if self.is_whole else self.trips // self.at_once - 1
        number = self.number if self.is_whole else self.inside
        place = slice_index(number, self.at_once, direction) if inside is None else inside
        return [place] if last is None else [slice_index(self.block, last + 1, direction), place]


class _Rewriter:
    """Choose the nests that run first in all loops of a kernel, then rewrite it. Raises NoMatch for another form."""

    def __init__(self, trips: int):
        self._trips = trips
        self.loops: dict[Var, _Loop] = {}
        #: new buffers: of sequences, whose axis of trips becomes two, and of values, with an axis of trips
        self.buffers: dict[Var, Var] = {}
        #: by sequence, its axis of trips; by value, its loop
        self._axes: dict[Var, int] = {}
        self._values: dict[Var, _Loop] = {}

    def plan(self, around: SBlock) -> None:
        """Choose the nests of the loop that ends a block, and of loops inside."""
        before, number, trips, stages = loop_parts(around.body)
        at_once = divisors(trips, self._trips or trips)[-1]
        first = nests_first(around, before, stages, number, trips) if at_once > 1 else {}
        if first:
            ways = {nest.target: way for nest, way in first.items()}
            loop = self.loops[number] = _Loop(number, trips, at_once, frozenset(first), ways)
            for value in ways:
                self._values[value] = loop
                self.buffers[value] = reshaped(value, [at_once, *map(int, value.ty.shape)])
            for stage in stages if not loop.is_whole else ():
                self._divide_sequences(stage, loop)
        for stage in stages:
            if is_loop_body(stage.body):
                self.plan(stage)

    def _divide_sequences(self, stage: SBlock, loop: _Loop) -> None:
        for buffer, accesses in accesses_of(stage).items():
            axes = {axis for each in accesses for axis, index in enumerate(each) if uses(index, loop.number)}
            if not axes:
                continue
            (axis, *others) = axes
            if others or self._axes.setdefault(buffer, axis) != axis:
                raise NoMatch("a buffer is read in slices along several axes")
            shape = [int(extent) for extent in buffer.ty.shape]
            shape[axis : axis + 1] = [loop.trips // loop.at_once, loop.at_once]
            known = self.buffers.setdefault(buffer, reshaped(buffer, shape))
            if [int(extent) for extent in known.ty.shape] != shape:
                raise NoMatch("two loops divide a buffer in different ways")

    def rewrite(self, block: SBlock) -> tuple[Stmt, list[Var]]:
        """Rewrite the content of a block; return it with the buffers of the block."""
        own = [self.buffers.get(each, each) for each in block.alloc_buffers]
        if not is_loop_body(block.body):
            return sequence([self._bind(each) for each in statements(block.body)]), own
        _, number, trips, stages = loop_parts(block.body)
        before = [self._bind(each) for each in statements(block.body)[:-1]]
        loop = self.loops.get(number)
        if loop is None:
            return sequence([*before, loop_of(number, trips, self._stages(stages))]), own
        divided = [self._divide(stage, loop) for stage in stages]
        first = [stage for stage, _, _ in divided if stage is not None]
        rest = [stage for _, stage, _ in divided if stage is not None]
        # the inner loop has states of its own, which begin as those of the outer one, and become them
        states = {each: reshaped(each, [*map(int, each.ty.shape)]) for each in _carried(rest)}
        inside = [each for each in own if each not in self.buffers.values() and each not in states]
        inner = [
            *(copy_stage(Place(each), Place(state)) for each, state in states.items()),
            loop_of(
                number if loop.is_whole else loop.inside,
                loop.at_once,
                [replaced(each, states) for each in self._stages(rest)],
            ),
        ]
        outer = [
            *first,
            stage_block("loop", sequence(inner), inside),
            *(copy_stage(Place(state), Place(each)) for each, state in states.items()),
        ]
        values = [buffer for _, _, buffers in divided for buffer in buffers]
        buffers = [*(each for each in own if each not in inside), *values, *states.values()]
        return sequence([*before, loop_of(loop.block, trips // loop.at_once, outer)]), buffers

    def _stages(self, stages: Sequence[SBlock]) -> list[Stmt]:
        return [stage_block(each.name_hint, *self.rewrite(each)) for each in stages]

    def _divide(self, stage: SBlock, loop: _Loop) -> tuple[Stmt | None, SBlock | None, list[Var]]:
        """Return the part of a stage that runs first, rewritten, the part left, and the buffers between them."""
        nests = statements(stage.body)
        moves = [Nest(stage, number) in loop.first for number in range(len(nests))]
        if not any(moves):
            return None, stage, []
        first, left = ([nest for nest, moved in zip(nests, moves) if moved is wanted] for wanted in (True, False))
        read = {each.source for nest in left for each in loads(nest)}
        moved = {each: self.buffers[each] for each in stage.alloc_buffers if each in loop.directions}
        own, between = ([new for each, new in moved.items() if (each in read) is wanted] for wanted in (False, True))
        batched = stage_block(stage.name_hint, sequence([self._batch(nest, loop) for nest in first]), own)
        if not left:
            return batched, None, []
        kept = [each for each in stage.alloc_buffers if each not in moved]
        return batched, SBlock([], [], [], stage.name_hint, sequence(left), alloc_buffers=kept), between

    def _batch(self, nest: Stmt, loop: _Loop) -> Stmt:
        """Run a nest for all trips of a block: its block has an axis more."""
        axis, count = Var("v_j", "int64"), Var("j", "int64")
        bound = _add_axis(self._bind(nest, loop, axis), axis, count, loop.at_once)
        return For(count, int64(0), int64(loop.at_once), _SERIAL, bound)

    def _bind(self, stmt: Stmt, batched: _Loop | None = None, place: Var | None = None) -> Stmt:
        """Rewrite accesses; in a nest that runs first, slices and values of its loop are at their `place` in memory."""

        def at(buffer: Var, indices: Sequence[Expr]) -> Sequence[Expr]:
            if buffer in self._values:
                loop = self._values[buffer]
                inside = place if loop is batched else None
                own = loop.slice_at(loop.directions[buffer], inside)[-1]
                return [own, *indices]
            for axis, index in enumerate(indices):
                for loop in self.loops.values():
                    inside = place if loop is batched else None
                    if uses(index, loop.number) and (inside is not None or not loop.is_whole):
                        way = direction_of([[index]], loop.number, loop.trips)
                        if not way:
                            raise NoMatch("a sequence is read by something else than the number of a trip")
                        return [*indices[:axis], *loop.slice_at(way, inside), *indices[axis + 1 :]]
            if buffer in self._axes:
                raise NoMatch("a divided sequence is read by something else than the number of a trip")
            return indices

        accessed = [*(load.source for load in loads(stmt)), *(store.buffer for store in collect(stmt, BufferStore))]
        return move_accesses(stmt, {each: self.buffers.get(each, each) for each in accessed} | self.buffers, at)


def _carried(stages: Sequence[SBlock]) -> list[Var]:
    """List the buffers that a trip reads before it writes them: the states of a loop."""
    written: set[Var] = set()
    read: dict[Var, None] = {}

    for block in (each for stage in stages for each in collect(stage, SBlock)):
        if isinstance(block.body, BufferStore):
            read.update(dict.fromkeys(source for source in sources_of(block) if source not in written))
            written.add(block.body.buffer)
    return [buffer for buffer in read if buffer in written]


def _add_axis(nest: Stmt, axis: Var, count: Var, extent: int) -> Stmt:
    """Give the block of a loop nest one more axis, its first, of a loop around it."""
    if isinstance(nest, For):
        return with_fields(nest, body=_add_axis(nest.body, axis, count, extent))
    made = with_fields(nest.block, iter_vars=[IterVar(Range(0, int64(extent)), axis, _SPATIAL), *nest.block.iter_vars])
    return SBlockRealize([count, *nest.iter_values], nest.predicate, made)
