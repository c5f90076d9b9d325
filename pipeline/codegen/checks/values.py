"""Check the values in an expression that are addresses, divisors or shifts and come from data.

    x[i[n]]      fail:   if not 0 <= i[n] < 5, the kernel fails before it        clamp:  x[max(min(i[n], 4), 0)]
    a[n] / b[n]  fail:   if b[n] == 0, likewise                                  clamp:  a[n] / 1 where b[n] is 0

What loops, conditions or constant tensors prove to be in range stays as it is. ONNX forbids all other values. An integer's
least value divided by -1 wraps around, as in NumPy: processors trap.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import tvm_ffi
from tvm import tirx
from tvm.ir import Call, Expr, TensorLoad, Var
from tvm.tirx import EQ, NE, And, Broadcast, Cast, Div, FloorDiv, FloorMod, LShift, Mod, Not, Ramp, RShift, Select

from ...frontend.relax.checked import CHECKED
from ...targets.target import IndexChecks
from ...tir.expressions import choice_of, collect, is_choice, loads
from ...tir.index_grid import NoMatch
from .proofs import Proofs
from .rebuild import rebuild

INDEX, DIVISOR, SHIFT = "an index is out of range", "a divisor is 0", "a shift is out of range"
DIVISIONS = (Div, Mod, FloorDiv, FloorMod)
SHIFTS = (LShift, RShift)
#: range of floats before they become integers: float32 represents both, and no tensor is larger
_LEAST, _GREATEST = -(2.0**31), 2.0**31 - 128
_MOST_FLOAT16 = 65504.0
#: bits of the widest integers
_WIDEST = 64


@dataclass(frozen=True)
class Demand:
    """Condition for a kernel to go on, checked if all `conditions` hold."""

    met: Expr
    conditions: tuple[Expr, ...]
    reason: str


class ValueChecks:
    """Rewrite the expressions of one kernel; `demands` collects what has to hold before them, in order."""

    def __init__(self, proofs: Proofs, mode: IndexChecks, by_data: Callable[[Var], bool]) -> None:
        self._proofs, self._mode, self._by_data = proofs, mode, by_data
        self.demands: list[Demand] = []

    def rewrite(self, expr: Expr, conditions: tuple[Expr, ...] = ()) -> Expr:
        """Return `expr` in a form that may be evaluated once the demands are met."""
        choice = choice_of(expr)
        if choice is not None:
            return self._choice(expr, choice, conditions)
        if isinstance(expr, Call) and getattr(expr.op, "name", "") == CHECKED:
            value, low, high, reason = expr.args
            return self._demand_range(self.rewrite(value, conditions), int(low), int(high), reason.value, conditions)
        expr = rebuild(expr, lambda each: self.rewrite(each, conditions))
        if isinstance(expr, TensorLoad):
            indices = self.indices(expr.source, expr.indices, conditions)
            return expr if indices is None else tirx.BufferLoad(expr.source, indices)
        if isinstance(expr, DIVISIONS) and "float" not in str(expr.ty.dtype):
            return self._division(expr, conditions)
        if isinstance(expr, SHIFTS):
            return type(expr)(expr.a, self._demand_range(expr.b, 0, expr.a.ty.dtype.bits - 1, SHIFT, conditions))
        return expr

    def indices(self, buffer: Var, indices: Sequence[Expr], conditions: tuple[Expr, ...] = ()) -> list[Expr] | None:
        """Return the indices of an access, whose own operands are rewritten already; None if they stay."""
        extents = [int(extent) for extent in buffer.ty.shape]
        found = [self._index(index, extent, conditions) for index, extent in zip(indices, extents)]
        return None if all(one.same_as(other) for one, other in zip(found, indices)) else found

    def _index(self, index: Expr, extent: int, conditions: tuple[Expr, ...]) -> Expr:
        if not self._is_by_data(index):
            return index
        if isinstance(index, Broadcast):
            return Broadcast(self._index(index.value, extent, conditions), index.lanes)
        if isinstance(index, Ramp):
            end = (int(index.lanes) - 1) * int(index.stride)
            base = self._demand_range(index.base, max(0, -end), extent - 1 - max(0, end), INDEX, conditions)
            return Ramp(base, index.stride, index.lanes)
        return self._demand_range(index, 0, extent - 1, INDEX, conditions)

    def _is_by_data(self, expr: Expr) -> bool:
        return bool(loads(expr)) or any(map(self._by_data, collect(expr, Var)))

    def _choice(self, expr: Expr, choice: tuple, conditions: tuple[Expr, ...]) -> Expr:
        condition = self.rewrite(choice[0], conditions)
        before = len(self.demands)
        value = self.rewrite(choice[1], (*conditions, condition))
        other = self.rewrite(choice[2], (*conditions, Not(condition)))
        if len(self.demands) > before and not is_choice(expr):  # a select evaluates both values
            return tirx.if_then_else(condition, value, other)
        if all(one.same_as(each) for one, each in zip(choice, (condition, value, other))):
            return expr
        return (
            Select(condition, value, other) if isinstance(expr, Select) else tirx.if_then_else(condition, value, other)
        )

    def _demand_range(self, value: Expr, low: int, high: int, reason: str, conditions: tuple[Expr, ...]) -> Expr:
        """Demand a value from `low` to `high`, as far as that is not known; clamp it where that is asked for."""
        least, greatest = self._proofs.bounds(value, conditions)
        if low <= least and greatest <= high:
            return value
        dtype = str(value.ty.dtype)
        value = _saturate(value)
        demands = [tirx.const(low, dtype) <= value] if least < low else []
        demands += [value <= tirx.const(high, dtype)] if greatest > high else []
        self._demand(demands, reason, conditions)
        if self._mode != "clamp":
            return value
        value = tirx.min(value, tirx.const(high, dtype)) if greatest > high else value
        return tirx.max(value, tirx.const(low, dtype)) if least < low else value

    def _division(self, expr: Expr, conditions: tuple[Expr, ...]) -> Expr:
        """Keep a division from 0, and from an overflow."""
        dtype, divisor = str(expr.ty.dtype), expr.b
        least, greatest = self._proofs.bounds(divisor, conditions)
        if least <= 0 <= greatest:
            self._demand([NE(divisor, tirx.const(0, dtype))], DIVISOR, conditions)
            if self._mode == "clamp":
                divisor = Select(EQ(divisor, tirx.const(0, dtype)), tirx.const(1, dtype), divisor)
        bits = expr.ty.dtype.bits
        if (
            dtype.startswith("int")
            and least <= -1 <= greatest
            and self._proofs.bounds(expr.a, conditions)[0] <= 1 - (1 << (bits - 1))
        ):
            if bits < _WIDEST:  # TVM takes an int32 never to be its least value, and drops a comparison
                wide = f"int{max(32, 2 * bits)}"
                return Cast(dtype, type(expr)(Cast(wide, expr.a), Cast(wide, divisor)))
            overflows = And(EQ(expr.a, tirx.min_value(dtype)), EQ(expr.b, tirx.const(-1, dtype)))
            divisor = Select(overflows, tirx.const(1, dtype), divisor)
        return expr if divisor.same_as(expr.b) else type(expr)(expr.a, divisor)

    def _demand(self, demands: Sequence[Expr], reason: str, conditions: tuple[Expr, ...]) -> None:
        if "x" in str(demands[0].ty.dtype):
            raise NoMatch("a vector of indices that come from data")
        met = demands[0] if len(demands) == 1 else And(*demands)
        self.demands.append(Demand(met, conditions, reason))


def _saturate(value: Expr) -> Expr:
    """Convert floats in an index to integers within range: beyond it, a conversion may give other values each time."""

    def convert(cast: Cast) -> Expr:
        dtype = str(cast.value.ty.dtype)
        if "float" not in dtype or "int" not in str(cast.ty.dtype):
            return cast
        least, greatest = (-_MOST_FLOAT16, _MOST_FLOAT16) if dtype == "float16" else (_LEAST, _GREATEST)
        low, high = tirx.const(least, dtype), tirx.const(greatest, dtype)
        # of NaN, no comparison holds
        return Cast(str(cast.ty.dtype), Select(cast.value > low, Select(cast.value < high, cast.value, high), low))

    return tvm_ffi.structural_map(value, (Cast, convert))
