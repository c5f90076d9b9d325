"""Split loops over taps between rows of a ring and rows just computed: no tap chooses between two places.

    for j in 5: acc[…] += (row[…] if j >= 4 else ring[(first + j) % 4, …]) · weight[j]      both are loaded, and one taken

    for j in 4: acc[…] += ring[(first + j) % 4, …] · weight[j]
    for j in 1: acc[…] += row[…] · weight[j + 4]

Index set splitting: Wolfe, High Performance Compilers for Parallel Computing, 1996, ch. 9.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import tvm_ffi
from tvm.ir import Expr
from tvm.s_tir import SBlock
from tvm.tirx import For, PrimFunc, Select, Stmt
from tvm.tirx.analysis import undefined_vars

from ...tir.expressions import collect, distinct, loads, map_body, replaced, uses
from ...tir.index_grid import GridLoop, NoMatch, grid_over
from ...tir.loop_nests import bounds_of, in_loops, int64, renewed, sequence, with_fields
from ...tir.rolled_loops import MOST_STEPS
from ...tir.switches import switchable

_SERIAL, _UNROLLED = 0, 3
#: most parts of a loop: more would be more code than it is worth
_PARTS = 6
#: a condition, and whether it holds in each iteration of a loop: never, always, or for some rows of a tile
_Held = tuple[Expr, tuple[bool | None, ...]]


@switchable
def split_taps(kernel: PrimFunc) -> PrimFunc:
    """Split short loops of `kernel`, bound to rows, by their choices of rows; return `kernel` itself if it has none."""
    return map_body(kernel, (For, _split))


def _split(loop: For) -> Stmt:
    first, extent = bounds_of(loop) or (0, 0)
    if int(loop.kind) != _SERIAL or first or not 1 < extent <= MOST_STEPS:
        return loop
    if any(block.init is not None or block.alloc_buffers for block in collect(loop.body, SBlock)):
        return loop
    choices = (each.condition for each in collect(loop.body, Select) if not loads(each.condition))
    asked = ((each, _iterations_held(each, loop)) for each in distinct(choices))
    held = [(condition, holds) for condition, holds in asked if len(set(holds)) > 1]
    ways = [tuple(each[step] for _, each in held) for step in range(extent)]
    # a step in which rows of a tile differ is alone: unrolled, each row has its place
    starts = [
        step for step in range(extent) if not step or ways[step] != ways[step - 1] or any(w is None for w in ways[step])
    ]
    if not held or not 1 < len(starts) <= _PARTS:
        return loop
    return sequence([_part(loop, start, end, held) for start, end in pairwise([*starts, extent])])


def _part(loop: For, start: int, end: int, held: Sequence[_Held]) -> Stmt:
    """Build the loop from one iteration to another, its choices taken."""

    def taken(select: Select) -> Expr:
        known = (holds[start] for condition, holds in held if tvm_ffi.structural_equal(select.condition, condition))
        value = next(known, None)
        return select if value is None else select.true_value if value else select.false_value

    var, body = loop.loop_var, tvm_ffi.structural_map(loop.body, (Select, taken))
    if end - start == 1:
        return renewed(replaced(body, {var: int64(start)}))
    body = replaced(body, {var: var + start}) if start else body
    return renewed(with_fields(loop, extent=int64(end - start), body=body))


def _iterations_held(condition: Expr, loop: For) -> tuple[bool | None, ...]:
    """Return whether a condition in a loop holds in each iteration; none if more than unrolled loops inside decide too."""
    value = in_loops(condition, loop.body)
    inside = [each for each in collect(loop.body, For) if int(each.kind) == _UNROLLED and uses(value, each.loop_var)]
    grid = grid_over([GridLoop(each.loop_var, 0, int(each.extent)) for each in (loop, *inside)])
    if not uses(value, loop.loop_var) or not set(undefined_vars(value)) <= grid.values.keys():
        return ()
    try:
        holds = grid.holds(value).reshape(int(loop.extent), -1)
    except NoMatch:
        return ()
    return tuple(bool(row[0]) if row.all() == row.any() else None for row in holds)
