"""Find how the loops around a statement move its accesses, and which choices each iteration makes anew."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import tvm_ffi
from tvm import tirx
from tvm.ir import Expr, TensorLoad, Var
from tvm.tirx import Cast, FloorDiv, FloorMod

from ..expressions import choice_of, conjuncts, loads, parts, values_by_position, walk
from ..index_grid import Grid, NoMatch
from ..memoise import structural_hash
from .loop_counts import CountedLoop


class Strides:
    """Move of an access in elements per step of each loop: from its first iteration to the second, and to the last.

    `bound` are the values of block axes.
    """

    def __init__(self, loops: Sequence[CountedLoop], bound: Iterable[tuple[Var, Expr]]):
        self._loops, self._bound, self._count = loops, dict(bound), len(loops)
        self._inner = max((number for number, loop in enumerate(loops) if loop.extent > 1), default=None)
        self._grid = Grid((2 * self._count + 1,))
        self._steps = np.array([max(1, loop.extent - 1) for loop in loops], np.int64)
        for number, loop in enumerate(loops):
            values = np.zeros(2 * self._count + 1, np.int64)
            values[[number + 1, self._count + number + 1]] = min(1, loop.extent - 1), loop.extent - 1
            self._grid.values[loop.var] = values
        for var, value in self._bound.items():
            try:
                self._grid.values[var] = self._grid.evaluate(value)
            except NoMatch:
                self._grid.values.pop(var, None)

    def of(self, buffer: Var, indices: Sequence[Expr]) -> tuple[list[int | None], int | None]:
        """Return the strides and the first element; None for a loop that moves it by no constant number of elements.

        The first element is None where data decide on it.
        """
        data = [each for index in indices for each in loads(index)]
        try:
            flat = self._grid.flat([drop_loads(index) for index in indices] if data else indices, buffer)
        except NoMatch:
            return [None] * self._count, None
        moves = self._moves(flat)
        for each in data:
            moves = [None if other != 0 else move for move, other in zip(moves, self.of(each.source, each.indices)[0])]
        return moves, None if data else int(np.broadcast_to(flat, self._grid.shape)[0])

    def moving(self, value: Expr) -> list[int]:
        """Return by loop whether it changes a value: 1, or 0."""
        moves = [self.of(each.source, each.indices)[0] for each in loads(value)]
        own = [any(depends(each, loop.var, self._bound) for each in positions(value)) for loop in self._loops]
        return [int(moved or any(each[number] != 0 for each in moves)) for number, moved in enumerate(own)]

    def divisions(self, indices: Iterable[Expr]) -> int:
        """Count the different quotients and remainders that the innermost loop moves by no constant step."""
        return sum(map(self._is_uneven, _divisions(indices)))

    def wrapped(self, indices: Iterable[Expr], number: Var | None) -> list[list[int]]:
        """Return by loop whether it changes a quotient or remainder that the `number` of a call decides too.

        One such list for each, 1 or 0 a loop: no step of theirs is known before the call. Those of `divisions` are left out.
        """
        if number is None:
            return []
        return [
            [int(loop.extent > 1 and depends(each, loop.var, self._bound)) for loop in self._loops]
            for each in _divisions(indices)
            if depends(each, number, self._bound) and not self._is_uneven(each)
        ]

    def conditions(self, value: Expr) -> int:
        """Count the different comparisons by position in `value` that the innermost loop decides."""
        if self._inner is None:
            return 0
        choices = [choice_of(each) for each in walk(value) if values_by_position(each) is not None]
        found = {
            structural_hash(each): each for choice in choices if choice is not None for each in conjuncts(choice[0])
        }
        return sum(depends(each, self._loops[self._inner].var, self._bound) for each in found.values())

    def _is_uneven(self, value: Expr) -> bool:
        try:
            return self._inner is not None and self._moves(self._grid.evaluate(value))[self._inner] is None
        except NoMatch:
            return False

    def _moves(self, values: np.ndarray) -> list[int | None]:
        first, *steps = np.broadcast_to(values, self._grid.shape)
        once, whole = np.array(steps[: self._count]) - first, np.array(steps[self._count :]) - first
        return [int(move) if even else None for move, even in zip(once, whole == once * self._steps)]


def _divisions(indices: Iterable[Expr]) -> list[Expr]:
    """Return the different quotients and remainders in indices."""
    found = (each for index in indices for each in walk(index) if isinstance(each, (FloorDiv, FloorMod)))
    return list({structural_hash(each): each for each in found}.values())


def drop_loads(index: Expr) -> Expr:
    """Replace the loads in an index by 0, and roundings of floats that they alone make."""

    def drop_rounding(each: Cast) -> Expr:
        floats = "float" in str(each.value.ty.dtype) and not positions(each.value)
        return tirx.const(0, str(each.ty.dtype)) if floats else each

    return tvm_ffi.structural_map(
        index, [(TensorLoad, lambda each: tirx.const(0, str(each.ty.dtype))), (Cast, drop_rounding)]
    )


def positions(value: object) -> list[Var]:
    """List the variables in a value outside the indices of its loads."""
    if isinstance(value, TensorLoad):
        return []
    return [value] if isinstance(value, Var) else [each for part in parts(value) for each in positions(part)]


def depends(expr: object, var: Var, bound: Mapping[Var, Expr]) -> bool:
    """Return whether an expression uses `var`, itself or by the values of block axes."""
    if isinstance(expr, Var):
        return expr.same_as(var) or (expr in bound and depends(bound[expr], var, bound))
    return any(depends(each, var, bound) for each in parts(expr))
