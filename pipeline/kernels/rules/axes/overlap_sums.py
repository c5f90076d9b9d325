"""Overlap the last two vectors of a reduction whose extent the lanes do not divide.

    m = max x[k], k in 0…197                       197 = 12 · 16 + 5: no vector of 16 lanes divides it

    for v in 0…13, lane in 0…16:
        k = min(16 v, 181) + lane                  the last vector starts at 181, and meets 11 elements again
        m[lane] = max(m[lane], x[k])               a maximum does not change by that
        s[lane] += x[k] if k >= 16 v else 0        a sum adds 0 instead

Nothing is read past the end of a tensor.
"""

from __future__ import annotations

from collections.abc import Sequence

from tvm import tirx
from tvm.ir import Expr, Var
from tvm.s_tir import SBlock
from tvm.tirx import BufferStore, IterVar, PrimFunc, Stmt

from ....tir.expressions import accumulation, is_contiguous, loads, replaced, uses
from ....tir.index_grid import NoMatch
from ....tir.loop_nests import blocks_of, int64, kernel_of, nest_of
from .walked_dimensions import new_axes

_REDUCE = 2
#: lanes of a reduction of any length; vectors from which on a longer reduction takes more, or lets its last vectors overlap
SHORT, LONG = 16, 32


def widths(extent: int, lanes: Sequence[int]) -> list[int]:
    """Return the lanes worth joining at the end of a reduction of `extent` elements."""
    return [each for each in lanes if each <= SHORT or extent >= LONG * each]


def overlap_sums(kernel: PrimFunc, lanes: Sequence[int]) -> PrimFunc | None:
    """Split the reductions of an unscheduled kernel by the first fitting of `lanes`, the last vector overlapping the one before.

    Leaves a short reduction alone that vectors of half the lanes divide, a sum also that a quarter does. None if that is
    each, or for another form.
    """
    try:
        blocks = blocks_of(kernel)
    except NoMatch:
        return None
    nests = [_nest(block, lanes) for block in blocks]
    if not any(split for _, split in nests):
        return None
    return kernel_of(kernel.params, [nest for nest, _ in nests], kernel.body.block.alloc_buffers, kernel.attrs)


def _nest(block: SBlock, given: Sequence[int]) -> tuple[Stmt, bool]:
    """Return the loop nest of a block, and whether it was split."""
    split = _split_axis(block, given)
    extents = {} if split is None else {split[0].var: (-(-int(split[0].dom.extent) // split[1]), split[1])}
    axes, parts = new_axes(block, extents)
    values: dict[Var, Expr] = {var: each[0] for var, each in parts.items()}
    if split is not None:
        along, lanes = split
        vector, lane = parts[along.var]
        start = tirx.min(vector * lanes, int64(int(along.dom.extent) - lanes))
        values[along.var] = start + lane
    body = replaced(block.body, values)
    added = accumulation(body) if split is not None and type(body.value).__name__ == "Add" else None
    if added is not None:
        total, term = added
        first = lane >= vector * lanes - start
        total += tirx.Select(first, term, tirx.const(0, str(term.ty.dtype)))
        body = BufferStore(body.buffer, total, body.indices)
    init = None if block.init is None else replaced(block.init, values)
    return nest_of(axes, block.name_hint, body, init), split is not None


def _split_axis(block: SBlock, given: Sequence[int]) -> tuple[IterVar, int] | None:
    """Find the innermost axis of a reduction, and its lanes, if it runs along memory and no vector divides it."""
    if block.init is None or accumulation(block.body) is None:
        return None
    read = [load for load in loads(block.body.value) if not load.source.same_as(block.body.buffer)]
    for axis in reversed(block.iter_vars):
        if int(axis.iter_type) == _REDUCE and any(uses(index, axis.var) for load in read for index in load.indices):
            extent = int(axis.dom.extent)
            lanes = widths(extent, given)[0]
            if extent >= LONG * lanes:
                enough = lanes
            else:
                enough = lanes // 4 if type(block.body.value).__name__ == "Add" else lanes // 2
            return (
                None
                if extent < lanes or extent % enough == 0 or not is_contiguous(block.body.value, axis.var)
                else (axis, lanes)
            )
    return None
