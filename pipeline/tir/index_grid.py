"""Evaluate integer TIR expressions over a whole loop nest, as broadcasting numpy arrays."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product

import numpy as np
from tvm.ir import Call, Expr, Var
from tvm.tirx import Cast, FloatImm, IntImm, Not, Select

#: iterations evaluated at once: an int64 array of them takes 32 MiB
CHUNK = 1 << 22


class NoMatch(Exception):
    """Signal a kernel this analysis does not understand; caught by the caller that decides."""


@dataclass(frozen=True)
class GridLoop:
    """Loop of `var` from `start` over `extent` values."""

    var: Var
    start: int
    extent: int


#: (condition, whether it holds)
Mask = tuple[Expr, bool]


def _truncating_division(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Divide integers as C does: towards zero."""
    return np.sign(one) * np.sign(other) * (np.abs(one) // np.abs(other))


_BINARY = {
    "Add": operator.add, "Sub": operator.sub, "Mul": operator.mul, "Div": _truncating_division,
    "FloorDiv": operator.floordiv, "FloorMod": operator.mod, "Min": np.minimum, "Max": np.maximum,
    "EQ": operator.eq, "NE": operator.ne, "LT": operator.lt, "LE": operator.le, "GT": operator.gt, "GE": operator.ge,
    "And": np.logical_and, "Or": np.logical_or,
}  # fmt: skip


def chunks(loops: Sequence[GridLoop], bindings: Sequence[tuple[Var, Expr]]) -> Iterator[Grid]:
    """Yield all iterations in grids of at most CHUNK: outermost loops one value at a time, the next split."""
    inner = len(loops)
    while inner > 0 and math.prod(loop.extent for loop in loops[inner - 1 :]) <= CHUNK:
        inner -= 1
    outer, rest = loops[: max(inner - 1, 0)], loops[max(inner - 1, 0) :]
    for values in product(*(range(loop.start, loop.start + loop.extent) for loop in outer)):
        for within in _parts(rest):
            grid = grid_over(within)
            for loop, value in zip(outer, values):
                grid.values[loop.var] = np.int64(value)
            for var, expr in bindings:
                grid.values[var] = grid.evaluate(expr)
            yield grid


def grid_over(loops: Sequence[GridLoop]) -> Grid:
    """Return the grid of all iterations of `loops`, outermost first, with an axis for each."""
    grid = Grid(tuple(loop.extent for loop in loops))
    for axis, loop in enumerate(loops):
        along = [1] * len(loops)
        along[axis] = loop.extent
        grid.values[loop.var] = np.arange(loop.start, loop.start + loop.extent, dtype=np.int64).reshape(along)
    return grid


def _parts(loops: Sequence[GridLoop]) -> Iterator[Sequence[GridLoop]]:
    """Split the first loop so that each part has at most CHUNK iterations."""
    if math.prod(loop.extent for loop in loops) <= CHUNK:
        yield loops
        return
    first, *rest = loops
    step = max(1, CHUNK // math.prod(loop.extent for loop in rest))
    end = first.start + first.extent
    for start in range(first.start, end, step):
        yield [GridLoop(first.var, start, min(step, end - start)), *rest]


@dataclass
class Grid:
    """Hold the values of variables over iterations of `shape`."""

    shape: tuple[int, ...]
    values: dict[Var, np.ndarray] = field(default_factory=dict)

    def flat(self, indices: Sequence[Expr], buffer: Var) -> np.ndarray:
        """Return the row-major element number of `indices` in a compact buffer."""
        total = np.int64(0)
        for index, extent in zip(indices, buffer.ty.shape, strict=True):
            total = total * int(extent) + self.evaluate(index)
        return np.asarray(total)

    def mask(self, masks: Sequence[Mask]) -> np.ndarray | bool:
        """Return the iterations for which all masks may hold; True for everywhere.

        A condition on data may hold anywhere.
        """
        where: np.ndarray | bool = True
        for condition, holds in masks:
            try:
                value = np.asarray(self.evaluate(condition), dtype=bool)
            except NoMatch:
                continue
            where = np.logical_and(where, value if holds else ~value)
        return where

    def select(self, masks: Sequence[Mask], *values: np.ndarray) -> list[np.ndarray]:
        """Return values in the iterations for which all masks may hold, as flat arrays."""
        where = self.mask(masks)
        whole = [np.broadcast_to(each, self.shape) for each in values]
        return [each.ravel() if where is True else each[np.broadcast_to(where, self.shape)] for each in whole]

    def holds(self, condition: Expr) -> np.ndarray:
        """Evaluate a condition in all iterations, as bool. Raises NoMatch as `evaluate` does."""
        return np.broadcast_to(np.asarray(self.evaluate(condition), bool), self.shape)

    def evaluate(self, expr: Expr) -> np.ndarray:
        """Evaluate an integer expression. Raises NoMatch if it depends on more than the variables."""
        if isinstance(expr, IntImm):
            return np.int64(int(expr))
        if isinstance(expr, Var):
            if expr not in self.values:
                raise NoMatch(f"the variable {expr.name} has no value")
            return self.values[expr]
        combine = _BINARY.get(type(expr).__name__)
        if combine is not None and "float" not in str(expr.a.ty.dtype):
            return combine(self.evaluate(expr.a), self.evaluate(expr.b))
        if isinstance(expr, Not):
            return np.logical_not(self.evaluate(expr.a))
        if isinstance(expr, Cast) and "int" in str(expr.ty.dtype):
            return self.evaluate(expr.value)
        if isinstance(expr, Select):
            return np.where(*map(self.evaluate, (expr.condition, expr.true_value, expr.false_value)))
        if isinstance(expr, Call) and getattr(expr.op, "name", "") in ("prim.if_then_else", "prim.likely"):
            values = [self.evaluate(argument) for argument in expr.args]
            return np.where(*values) if len(values) == 3 else values[0]
        raise NoMatch(type(expr).__name__)


def holds_along(condition: Expr, var: Var, extent: int) -> np.ndarray:
    """Evaluate a condition on `var` alone for 0 … `extent` - 1, as bool (extent,). Raises NoMatch."""
    grid = RoughGrid((extent,), {var: np.arange(extent)})
    holds = grid.holds(condition)
    if grid.rough:
        raise NoMatch("a condition depends on rounded coordinates")
    return holds


_ROUNDED = {"floor": np.floor, "ceil": np.ceil, "round": np.round, "nearbyint": np.rint, "trunc": np.trunc}


class RoughGrid(Grid):
    """Evaluate also coordinates of resized images, in float64.

    `rough` tells that it did: then the integer a kernel rounds to in float32 may differ by one.
    """

    rough: bool = False

    def evaluate(self, expr: Expr) -> np.ndarray:
        if isinstance(expr, Cast) and "float" in str(expr.value.ty.dtype) and "int" in str(expr.ty.dtype):
            self.rough = True
            return np.trunc(self._real(expr.value)).astype(np.int64)
        return super().evaluate(expr)

    def _real(self, expr: Expr) -> np.ndarray:
        if isinstance(expr, FloatImm):
            return np.float64(expr.value)
        if isinstance(expr, Cast):
            return self._real(expr.value) if "float" in str(expr.value.ty.dtype) else self.evaluate(expr.value) * 1.0
        combine = operator.truediv if type(expr).__name__ == "Div" else _BINARY.get(type(expr).__name__)
        if combine is not None:
            return combine(self._real(expr.a), self._real(expr.b))
        rounded = _ROUNDED.get(str(getattr(getattr(expr, "op", None), "name", "")).rpartition(".")[2])
        if rounded is not None and isinstance(expr, Call):
            return rounded(self._real(expr.args[0]))
        raise NoMatch(type(expr).__name__)
