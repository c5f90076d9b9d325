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

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import tvm_ffi
from tvm import tirx
from tvm.ir import Expr, Range, TensorLoad, TensorRegion, Var
from tvm.s_tir import SBlock, SBlockRealize
from tvm.tirx import BufferStore, For, IterVar, PrimFunc, Stmt

from ...frontend.relax.loop_kernel import ITERATIONS, Place, copy_stage, loop_of, stage_block
from ...tir.expressions import loads, replaced, uses
from ...tir.index_grid import Unknown
from ...tir.loop_nests import all_of, block_of, int64, reshaped, sequence, statements
from ...tir.memoise import memoise_by_structure
from ..lower.loop_stages import accesses_of, buffers_written, is_loop_body, loop_parts
from ..lower.loops import can_take_apart

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
        if not rewriter.loops:
            return None
        stmt, own = rewriter.rewrite(kernel.body.block)
    except Unknown:
        return None
    params = [rewriter.buffers.get(each, each) for each in kernel.params]
    root = SBlock([], [], [], "root", stmt, alloc_buffers=own)
    made = PrimFunc(params, SBlockRealize([], tirx.const(True), root), attrs=kernel.attrs)
    made = made.with_attr(ITERATIONS, int(statements(stmt)[-1].extent))
    shapes = {
        number: tuple(map(int, new.ty.shape))
        for number, (old, new) in enumerate(zip(kernel.params, params))
        if not new.same_as(old)
    }
    return Distributed(made, shapes) if can_take_apart(made) else None


class _Nest(NamedTuple):
    """Loop nest of a plain stage, by its number there."""

    stage: SBlock
    number: int

    @property
    def target(self) -> Var:
        """Return the buffer that the nest writes."""
        return block_of(statements(self.stage.body)[self.number]).body.buffer


@dataclass(frozen=True)
class _Loop:
    """Loop to distribute: the `number` of its trips, `trips`, those `at_once`, and the nests that run `first`.

    `directions` are those in which nests read slices, 1 or -1, by the values they write. With fewer trips at once than
    all, `block` and `inside` are the new numbers, of a block of trips and of a trip in it.
    """

    number: Var
    trips: int
    at_once: int
    first: frozenset[_Nest]
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
        place = _slice_index(number, self.at_once, direction) if inside is None else inside
        return [place] if last is None else [_slice_index(self.block, last + 1, direction), place]


class _Rewriter:
    """Choose the nests that run first in all loops of a kernel, then rewrite it. Raises Unknown for another form."""

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
        at_once = next(size for size in range(min(self._trips or trips, trips), 0, -1) if trips % size == 0)
        first = _nests_first(around, before, stages, number, trips) if at_once > 1 else {}
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
                raise Unknown("a buffer is read in slices along several axes")
            shape = [int(extent) for extent in buffer.ty.shape]
            shape[axis : axis + 1] = [loop.trips // loop.at_once, loop.at_once]
            known = self.buffers.setdefault(buffer, reshaped(buffer, shape))
            if [int(extent) for extent in known.ty.shape] != shape:
                raise Unknown("two loops divide a buffer in different ways")

    def rewrite(self, block: SBlock) -> tuple[Stmt, list[Var]]:
        """Rewrite what is inside a block; return that, and the buffers of the block."""
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
        kept = [each for each in own if each not in inside]
        return sequence([*before, loop_of(loop.block, trips // loop.at_once, outer)]), [*kept, *values, *states.values()]

    def _stages(self, stages: Sequence[SBlock]) -> list[Stmt]:
        return [stage_block(each.name_hint, *self.rewrite(each)) for each in stages]

    def _divide(self, stage: SBlock, loop: _Loop) -> tuple[Stmt | None, SBlock | None, list[Var]]:
        """Return the part of a stage that runs first, rewritten, the part left, and the buffers between them."""
        nests = statements(stage.body)
        first = [nest for number, nest in enumerate(nests) if _Nest(stage, number) in loop.first]
        if not first:
            return None, stage, []
        left = [nest for nest in nests if nest not in first]
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

        def at(buffer: Var, indices: Sequence[Expr]) -> list[Expr] | None:
            if buffer in self._values:
                loop = self._values[buffer]
                inside = place if loop is batched else None
                own = loop.slice_at(loop.directions[buffer], inside)[-1]
                return [own, *indices]
            for axis, index in enumerate(indices):
                for loop in self.loops.values():
                    inside = place if loop is batched else None
                    if uses(index, loop.number) and (inside is not None or not loop.is_whole):
                        way = _direction([[index]], loop.number, loop.trips)
                        if not way:
                            raise Unknown("a sequence is read by something else than the number of a trip")
                        return [*indices[:axis], *loop.slice_at(way, inside), *indices[axis + 1 :]]
            if buffer in self._axes:
                raise Unknown("a divided sequence is read by something else than the number of a trip")
            return None

        def load(each: TensorLoad) -> TensorLoad:
            found = at(each.source, each.indices)
            return each if found is None else tirx.BufferLoad(self.buffers.get(each.source, each.source), found)

        def store(each: BufferStore) -> BufferStore:
            found = at(each.buffer, each.indices)
            return each if found is None else BufferStore(self.buffers.get(each.buffer, each.buffer), each.value, found)

        def region(each: TensorRegion) -> TensorRegion:
            return all_of(self.buffers[each.source]) if each.source in self.buffers else each

        return tvm_ffi.structural_map(stmt, [(TensorLoad, load), (BufferStore, store), (TensorRegion, region)])


def _slice_index(number: Var, trips: int, direction: int) -> Expr:
    return number if direction > 0 else int64(trips - 1) - number


def _nests_first(
    around: SBlock, before: Sequence[SBlock], stages: Sequence[SBlock], number: Var, trips: int
) -> dict[_Nest, int]:
    """Choose the nests worth running for many trips at once, with those they read: each by the direction of its slices."""
    changed = {buffer for stage in (*before, *stages) for buffer in (*buffers_written(stage), *stage.alloc_buffers)}
    single = _values_of_one_nest(around, before, stages)
    ways: dict[_Nest, int] = {}
    made: dict[Var, _Nest] = {}
    read: set[Var] = set()
    blocks: dict[_Nest, SBlock] = {}
    for stage in stages:
        for nest, block in _blocks(stage):
            blocks[nest], target, sources = block, block.body.buffer, _sources(block)
            found = {
                ways[made[source]] if source in made else 0 if source in changed else _direction(indices, number, trips)
                for source, indices in sources.items()
            } - {None}
            if found in ({1}, {-1}) and target in single and target not in read:
                (ways[nest],) = found
                made[target] = nest
            read.update(sources)
        read.update(accesses_of(stage))
    wanted = {nest for nest in ways if _sums_over_shared(blocks[nest], number, trips, changed)}
    left = list(wanted)
    while left:
        needed = {made[source] for source in _sources(blocks[left.pop()]) if source in made} - wanted
        wanted |= needed
        left += needed
    for nest in ways:  # what takes the place of a sum, such as that with its bias
        values = [made[source] for source in _sources(blocks[nest]) if source in made]
        if blocks[nest].init is None and values and wanted.issuperset(values):
            sizes = {math.prod(map(int, blocks[each].body.buffer.ty.shape)) for each in (nest, *values)}
            wanted |= {nest} if len(sizes) == 1 else set()
    return {nest: way for nest, way in ways.items() if nest in wanted}


def _values_of_one_nest(around: SBlock, before: Sequence[SBlock], stages: Sequence[SBlock]) -> set[Var]:
    """Collect the buffers of a loop that nothing but one nest of a plain stage writes."""
    count = Counter(block.body.buffer for stage in stages for _, block in _blocks(stage))
    others = [stage for stage in stages if not _blocks(stage)]
    taken = {buffer for stage in before for buffer in accesses_of(stage)} | {
        buffer for stage in others for buffer in buffers_written(stage)
    }
    local = {*around.alloc_buffers, *(buffer for stage in stages for buffer in stage.alloc_buffers)}
    return {buffer for buffer in local - taken if count[buffer] == 1}


def _blocks(stage: SBlock) -> list[tuple[_Nest, SBlock]]:
    """List the blocks of a stage's loop nests; none if it runs anything else."""
    try:
        return [(_Nest(stage, number), block_of(nest)) for number, nest in enumerate(statements(stage.body))]
    except Unknown:
        return []


def _sources(block: SBlock) -> dict[Var, list[Sequence[Expr]]]:
    """Collect the indices with which a block reads each buffer, but for its own sum."""
    found: dict[Var, list[Sequence[Expr]]] = {}
    for each in loads(block.body):
        if block.init is None or not each.source.same_as(block.body.buffer):
            found.setdefault(each.source, []).append(each.indices)
    return found


def _sums_over_shared(block: SBlock, number: Var, trips: int, changed: set[Var]) -> bool:
    """Return whether a block sums over an operand that all trips share."""
    return block.init is not None and any(
        source not in changed and _direction(indices, number, trips) is None
        for source, indices in _sources(block).items()
    )


def _carried(stages: Sequence[SBlock]) -> list[Var]:
    """List the buffers that a trip reads before it writes them: the states of a loop."""
    written: set[Var] = set()
    read: dict[Var, None] = {}

    def see(block: SBlock) -> None:
        if isinstance(block.body, BufferStore):
            read.update(dict.fromkeys(source for source in _sources(block) if source not in written))
            written.add(block.body.buffer)

    for stage in stages:
        tvm_ffi.structural_walk(stage, (SBlock, see))
    return [buffer for buffer in read if buffer in written]


def _direction(accesses: Sequence[Sequence[Expr]], number: Var, trips: int) -> int | None:
    """Return the direction in which accesses take the slice of a trip; None if they take none, 0 for other forms."""
    indices = [index for each in accesses for index in each if uses(index, number)]
    if not indices:
        return None
    for way in (1, -1):
        if all(tvm_ffi.structural_equal(index, _slice_index(number, trips, way)) for index in indices):
            return way
    return 0


def _add_axis(nest: Stmt, axis: Var, count: Var, extent: int) -> Stmt:
    """Give the block of a loop nest one more axis, its first, of a loop around it."""
    if isinstance(nest, For):
        return For(
            nest.loop_var, nest.min, nest.extent, nest.kind, _add_axis(nest.body, axis, count, extent),
            nest.thread_binding, nest.annotations, nest.step,
        )  # fmt: skip
    block = nest.block
    axes = [IterVar(Range(0, int64(extent)), axis, _SPATIAL), *block.iter_vars]
    made = SBlock(axes, block.reads, block.writes, block.name_hint, block.body, block.init)
    return SBlockRealize([count, *nest.iter_values], nest.predicate, made)
