"""Prove bounds of integer expressions in a kernel, from loops, conditions and constant tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack

from tvm import sym, tirx
from tvm.ir import Expr, Range, Var

from ...tir.expressions import loads

#: least and greatest element of each integer tensor that is constant, by kernel parameter
Constants = Mapping[Var, tuple[int, int]]


class Proofs:
    """Hold the known facts of a kernel's variables: ranges of loops, and of constant tensors."""

    def __init__(self, constants: Constants) -> None:
        self._constants = constants
        self._analyzer = sym.Analyzer()

    def bind(self, var: Var, start: Expr, extent: Expr) -> None:
        """Record the range of a loop or of a block's axis."""
        self._analyzer.bind(var, Range.from_min_extent(start, extent))

    def bounds(self, expr: Expr, conditions: Sequence[Expr]) -> tuple[int, int]:
        """Return bounds of an integer expression, inclusive, under conditions that hold."""
        with ExitStack() as known:
            for condition in (*conditions, *self._constant_conditions(expr)):
                known.enter_context(self._analyzer.constraint_scope(condition))
            # simplified, it may no longer be what a condition speaks of
            found = [self._analyzer.const_int_bound(each) for each in (expr, self._analyzer.simplify(expr))]
        return max(int(each.min_value) for each in found), min(int(each.max_value) for each in found)

    def _constant_conditions(self, expr: Expr) -> list[Expr]:
        """Return conditions on the loads from constant tensors in `expr`."""
        found = []
        for load in loads(expr):
            if load.source in self._constants:
                least, greatest = (tirx.const(each, str(load.ty.dtype)) for each in self._constants[load.source])
                found.append(tirx.all(least <= load, load <= greatest))
        return found
