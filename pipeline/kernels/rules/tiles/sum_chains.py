"""Give each sum of a small tile several accumulators: one waits for the multiply-add before it, which takes four cycles.

for k in 0…K: acc[v] += x[k] · w[k, v]              few sums v: the unit idles

for k in 0…K, 4 at a time: acc[0][v] += x[k] · w[k, v]; …; acc[3][v] += x[k + 3] · w[k + 3, v]
acc[0][v] += acc[1][v]; acc[0][v] += acc[2][v]; acc[0][v] += acc[3][v]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

import tvm_ffi
from tvm import tirx
from tvm.ir import Expr, Range, TensorRegion, Var
from tvm.s_tir import SBlock, SBlockRealize
from tvm.tirx import BufferStore, For, IntImm, IterVar, PrimFunc, SeqStmt, Stmt

from ....tir.expressions import COMBINED, is_true, loads, reads, replaced
from ....tir.index_grid import NoMatch
from ....tir.loop_nests import element_of, int64, move_accesses, nest_loops, renewed, reshaped, with_fields
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
            new, several = _chained(start, total, after, wanted)
        except NoMatch:
            return parts
        made.append((_block(total).body.buffer, several))
        return SeqStmt([*list(parts.seq)[: found[0] - 1], *new])

    body = tvm_ffi.structural_map(kernel.body, (SeqStmt, chained))
    if not made:
        return kernel
    (old, new), root = made[0], body.block
    if sum(each.same_as(old) for each in root.alloc_buffers) != 1:
        return kernel
    own = [new if each.same_as(old) else each for each in root.alloc_buffers]
    return kernel.with_body(SBlockRealize(body.iter_values, body.predicate, with_fields(root, alloc_buffers=own)))


def _chained(start: Stmt, total: Stmt, after: Sequence[Stmt], wanted: int) -> tuple[list[Stmt], Var]:
    """Rewrite the start of a tile, its sums and what reads them for several accumulators, and join these; return also their buffer."""
    update = _block(total).body
    buffer, join = update.buffer, COMBINED.get(type(update.value).__name__)
    if join is None or not isinstance(total, For):
        raise NoMatch("the reduction is not a sum, max or min in a loop")
    if not _block(start).body.buffer.same_as(buffer):
        raise NoMatch("the sums do not start before them")
    extent, inner = int(total.extent), _iterations(total.body)
    fitting = (each for each in range(wanted, 1, -1) if extent % each == 0 and extent // each * inner >= _FEWEST)
    count = next(fitting, None)
    if count is None:
        raise NoMatch("no number of accumulators divides the loop")
    several = reshaped(buffer, [count, *buffer.ty.shape])

    def of(part: object, chain: Expr):
        """Access the accumulators of a chain in place of the only ones."""
        return move_accesses(part, {buffer: several}, lambda _, indices: [chain, *indices])

    def joined(store: BufferStore, other: Expr) -> BufferStore:
        one, more = ([chain, *store.indices] for chain in (int64(0), other + int64(1)))
        return BufferStore(several, join(tirx.BufferLoad(several, one), tirx.BufferLoad(several, more)), one)

    def first(each: TensorRegion) -> TensorRegion:
        if not each.source.same_as(buffer):
            return each
        return tirx.BufferRegion(several, [Range.from_min_extent(int64(0), int64(1)), *each.region])

    old = total.loop_var
    outer, chain = (Var(name, "int64") for name in (old.name, "chain"))
    summed = _unrolled(replaced(total.body, {old: outer * int64(count) + chain}), chain, count, _SPATIAL, of)
    return [
        _unrolled(start, Var("chain_init", "int64"), count, _SPATIAL, of),
        with_fields(total, loop_var=outer, extent=int64(extent // count), body=summed),
        _unrolled(start, Var("chain_other", "int64"), count - 1, _REDUCE, joined),
        *(of(tvm_ffi.structural_map(each, (TensorRegion, first)), int64(0)) for each in after),
    ], several


def _unrolled(nest: Stmt, chain: Var, count: int, kind: int, change: _Change) -> Stmt:
    """Run a copy of a nest for each chain: an axis more of its block."""
    axis = IterVar(Range(int64(0), int64(count)), Var("v_chain", "int64"), kind)

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

    copy = tvm_ffi.structural_map(renewed(nest), (SBlockRealize, add_axis))
    return For(chain, int64(0), int64(count), _UNROLLED, copy)


def _sums(part: Stmt) -> bool:
    """Return whether a part of a tile is the nest of a sum."""
    try:
        block = _block(part)
    except NoMatch:
        return False
    return block.init is None and reads(block.body.value, block.body.buffer)


def _block(nest: Stmt) -> SBlock:
    """Return the block of a nest of loops. Raises NoMatch for another form."""
    _, nest = nest_loops(nest)
    if not isinstance(nest, SBlockRealize) or not is_true(nest.predicate):
        raise NoMatch("a part is not a nest of loops around one block")
    block = nest.block
    if not isinstance(block.body, BufferStore) or block.match_buffers or block.alloc_buffers:
        raise NoMatch("a block is more than one store")
    return block


def _iterations(nest: Stmt) -> int:
    """Count the terms of a sum within one iteration of its first loop."""
    loops, _ = nest_loops(nest)
    if not all(isinstance(loop.extent, IntImm) for loop in loops):
        raise NoMatch("a loop has no constant extent")
    return prod(int(loop.extent) for loop in loops if int(loop.kind) == _SERIAL)
