"""Give each sum of a small tile several accumulators: one waits for the multiply-add before it, which takes four cycles.

for k in 0…K: acc[v] += x[k] · w[k, v]              few sums v: the unit idles

for k in 0…K, 4 at a time: acc[0][v] += x[k] · w[k, v]; …; acc[3][v] += x[k + 3] · w[k + 3, v]
acc[0][v] += acc[1][v]; acc[0][v] += acc[2][v]; acc[0][v] += acc[3][v]
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import tvm_ffi
from tvm import tirx
from tvm.ir import Expr, Range, TensorRegion, Var
from tvm.s_tir import SBlock, SBlockRealize
from tvm.tirx import BufferStore, For, IntImm, IterVar, PrimFunc, SeqStmt, Stmt

from ....tir.expressions import COMBINED, is_true, loads, reads, replaced
from ....tir.index_grid import Unknown
from ....tir.loop_nests import element_of, move_accesses, renewed, reshaped, with_fields
from ....tir.switches import switchable
from .tile_size import IN_FLIGHT

_SERIAL, _UNROLLED = 0, 3
_SPATIAL, _REDUCE = 0, 2
#: fewest terms of an accumulator
_FEWEST = 8
#: change a store by the number of its chain
_Change = Callable[[BufferStore, Expr], BufferStore]


@switchable
def sum_chains(kernel: PrimFunc, accumulators: int, most: int) -> PrimFunc:
    """Multiply the `accumulators` of a tiled `kernel` up to the multiply-adds in flight, `most` at most.

    Returns `kernel` itself for a kernel of another form, or without a loop that several accumulators divide.
    """
    wanted = min(-(-IN_FLIGHT // accumulators), most // accumulators)
    if wanted < 2:
        return kernel
    made: list[tuple[Var, Var]] = []

    def chained(parts: SeqStmt) -> Stmt:
        found = [] if made else [number for number, part in enumerate(parts.seq) if number and _sums(part)]
        if len(found) != 1:
            return parts
        start, total, *after = list(parts.seq)[found[0] - 1 :]
        try:
            chains = _Chains(total, wanted)
            new = [*list(parts.seq)[: found[0] - 1], *chains.parts(start), *(chains.read(each) for each in after)]
        except Unknown:
            return parts
        made.append((chains.buffer, chains.several))
        return SeqStmt(new)

    body = tvm_ffi.structural_map(kernel.body, (SeqStmt, chained))
    if not made:
        return kernel
    (old, new), root = made[0], body.block
    if sum(each.same_as(old) for each in root.alloc_buffers) != 1:
        return kernel
    own = [new if each.same_as(old) else each for each in root.alloc_buffers]
    return kernel.with_body(SBlockRealize(body.iter_values, body.predicate, with_fields(root, alloc_buffers=own)))


class _Chains:
    """Rewrite the parts of a tile: `several` accumulators for each of `buffer`, `count` times as many."""

    def __init__(self, total: Stmt, wanted: int):
        block = _block(total)
        store = block.body
        self.total, self.buffer = total, store.buffer
        operator = type(store.value).__name__
        if operator not in COMBINED or not isinstance(total, For):
            raise Unknown("the reduction is not a sum, max or min in a loop")
        self.join = COMBINED[operator]
        extent = int(total.extent)
        inner = _iterations(total.body)
        fitting = [
            count for count in range(wanted, 1, -1) if extent % count == 0 and extent // count * inner >= _FEWEST
        ]
        if not fitting:
            raise Unknown("no number of accumulators divides the loop")
        self.count = fitting[0]
        self.several = reshaped(self.buffer, [self.count, *self.buffer.ty.shape])

    def parts(self, start: Stmt) -> list[Stmt]:
        """Build the tile's start, its sums, and their joining."""
        if not _block(start).body.buffer.same_as(self.buffer):
            raise Unknown("the sums do not start before them")
        old = self.total.loop_var
        outer, chain = (_like(old, name) for name in (old.name, "chain"))
        place = {old: outer * self._number(self.count) + chain}
        extent = self._number(int(self.total.extent) // self.count)
        summed = self._unrolled(self.total.body, place, chain, self.count, _SPATIAL, self.of)
        return [
            self._unrolled(start, {}, _like(old, "chain_init"), self.count, _SPATIAL, self.of),
            For(outer, self._number(0), extent, self.total.kind, summed, annotations=self.total.annotations),
            self._unrolled(start, {}, _like(old, "chain_other"), self.count - 1, _REDUCE, self._joined),
        ]

    def of(self, part: object, chain: Expr):
        """Access the accumulators of a chain in place of the only ones."""

        def region(each: TensorRegion) -> TensorRegion:
            if not each.source.same_as(self.buffer):
                return each
            return tirx.BufferRegion(self.several, [Range.from_min_extent(chain, self._number(1)), *each.region])

        part = tvm_ffi.structural_map(part, (TensorRegion, region))
        return move_accesses(part, {self.buffer: self.several}, lambda _, indices: [chain, *indices])

    def read(self, part: Stmt) -> Stmt:
        """Read the joined accumulators."""
        return self.of(part, self._number(0))

    def _joined(self, store: BufferStore, other: Expr) -> BufferStore:
        zero, one = [self._number(0), *store.indices], [other + self._number(1), *store.indices]
        value = self.join(tirx.BufferLoad(self.several, zero), tirx.BufferLoad(self.several, one))
        return BufferStore(self.several, value, zero)

    def _unrolled(
        self, nest: Stmt, values: Mapping[Var, Expr], chain: Var, count: int, kind: int, change: _Change
    ) -> Stmt:
        """Run a copy of a nest for each chain: an axis more of its block."""
        axis = IterVar(Range(self._number(0), self._number(count)), _like(chain, "v_chain"), kind)

        def add_axis(realize: SBlockRealize) -> SBlockRealize:
            store = change(realize.block.body, axis.var)
            block = with_fields(
                realize.block,
                iter_vars=[*realize.block.iter_vars, axis],
                reads=[element_of(load.source, load.indices) for load in loads(store.value)],
                writes=[element_of(store.buffer, store.indices)],
                body=store,
            )
            return SBlockRealize([*realize.iter_values, chain], realize.predicate, block)

        copy = tvm_ffi.structural_map(renewed(replaced(nest, values)), (SBlockRealize, add_axis))
        return For(chain, self._number(0), self._number(count), _UNROLLED, copy)

    def _number(self, value: int) -> IntImm:
        return IntImm(str(self.total.loop_var.ty.dtype), value)


def _sums(part: Stmt) -> bool:
    """Return whether a part of a tile is the nest of a sum."""
    try:
        block = _block(part)
    except Unknown:
        return False
    return block.init is None and reads(block.body.value, block.body.buffer)


def _block(nest: Stmt) -> SBlock:
    """Return the block of a nest of loops. Raises Unknown for another form."""
    while isinstance(nest, For):
        nest = nest.body
    if not isinstance(nest, SBlockRealize) or not is_true(nest.predicate):
        raise Unknown("a part is not a nest of loops around one block")
    block = nest.block
    if not isinstance(block.body, BufferStore) or block.match_buffers or block.alloc_buffers:
        raise Unknown("a block is more than one store")
    return block


def _iterations(nest: Stmt) -> int:
    """Count the terms of a sum within one iteration of its first loop."""
    count = 1
    while isinstance(nest, For):
        if not isinstance(nest.extent, IntImm):
            raise Unknown("a loop has no constant extent")
        count *= int(nest.extent) if int(nest.kind) == _SERIAL else 1
        nest = nest.body
    return count


def _like(var: Var, name: str) -> Var:
    return Var(name, str(var.ty.dtype))
