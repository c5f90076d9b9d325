"""Split loops over taps between rows of a ring and rows just computed: no tap chooses between two places.

    for j in 5: acc[…] += (row[…] if j >= 4 else ring[(first + j) % 4, …]) · weight[j]      both are loaded, and one taken

    for j in 4: acc[…] += ring[(first + j) % 4, …] · weight[j]
    for j in 1: acc[…] += row[…] · weight[j + 4]

Index set splitting: Wolfe, High Performance Compilers for Parallel Computing, 1996, ch. 9.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import tvm_ffi
from tvm.ir import Expr, Var
from tvm.s_tir import SBlockRealize
from tvm.tirx import For, IntImm, PrimFunc, Select, Stmt
from tvm.tirx.analysis import undefined_vars

from ...tir.expressions import is_among, loads, replaced, uses
from ...tir.index_grid import GridLoop, Unknown, grid_over
from ...tir.loop_nests import axis_values, int64, renewed, sequence
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
    body = tvm_ffi.structural_map(kernel.body, (For, _split), order="post")
    return kernel if body.same_as(kernel.body) else kernel.with_body(body)


def _split(loop: For) -> Stmt:
    extent = int(loop.extent) if isinstance(loop.extent, IntImm) else 0
    if int(loop.kind) != _SERIAL or not 1 < extent <= MOST_STEPS or not isinstance(loop.min, IntImm) or int(loop.min):
        return loop
    conditions = _Conditions(loop)
    held = [each for each in conditions.of_rows(extent) if len(set(each[1])) > 1] if conditions.is_plain else []
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
    found = [(condition, holds[start]) for condition, holds in held if holds[start] is not None]

    def taken(select: Select) -> Expr:
        for condition, holds in found:
            if tvm_ffi.structural_equal(select.condition, condition):
                return select.true_value if holds else select.false_value
        return select

    body = tvm_ffi.structural_map(loop.body, (Select, taken))
    if end - start == 1:
        return renewed(replaced(body, {loop.loop_var: int64(start)}))
    var = Var(loop.loop_var.name, "int64")
    body = replaced(body, {loop.loop_var: var + start if start else var})
    return For(var, int64(0), int64(end - start), loop.kind, renewed(body), annotations=loop.annotations)


class _Conditions:
    """Choices by position in a loop: their conditions, the values of the axes of blocks, and the unrolled loops inside.

    `is_plain`: no block in it starts a sum, or has a buffer of its own.
    """

    def __init__(self, loop: For):
        self._loop = loop
        self._rows: dict[Var, int] = {}
        self._bound: dict[Var, Expr] = {}
        self._found: list[Expr] = []
        self.is_plain = True
        seen = [(For, self._see_loop), (SBlockRealize, self._see_block), (Select, self._see_choice)]
        tvm_ffi.structural_walk(loop.body, seen)

    def _see_loop(self, loop: For) -> None:
        if int(loop.kind) == _UNROLLED:
            self._rows[loop.loop_var] = int(loop.extent)

    def _see_block(self, block: SBlockRealize) -> None:
        self.is_plain &= block.block.init is None and not block.block.alloc_buffers
        self._bound.update(axis_values(block))

    def _see_choice(self, select: Select) -> None:
        if not loads(select.condition) and not is_among(select.condition, self._found):
            self._found.append(select.condition)

    def of_rows(self, extent: int) -> list[_Held]:
        """Return the conditions that the loop, of `extent` iterations, and unrolled ones decide."""
        found = ((each, self._holds(each, extent)) for each in self._found)
        return [(condition, holds) for condition, holds in found if holds is not None]

    def _holds(self, condition: Expr, extent: int) -> tuple[bool | None, ...] | None:
        value = condition
        while used := [var for var in undefined_vars(value) if var in self._bound]:
            value = replaced(value, {var: self._bound[var] for var in used})
        extents = {self._loop.loop_var: extent} | self._rows
        asked = [self._loop.loop_var, *(var for var in self._rows if uses(value, var))]
        if not uses(value, self._loop.loop_var) or not set(undefined_vars(value)) <= set(asked):
            return None
        grid = grid_over([GridLoop(var, 0, extents[var]) for var in asked])
        try:
            holds = np.broadcast_to(np.asarray(grid.evaluate(value), bool), grid.shape).reshape(extent, -1)
        except Unknown:
            return None
        return tuple(bool(row[0]) if row.all() == row.any() else None for row in holds)
