"""Read a Relax function as a graph of values: definitions, uses, shapes, constants."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
from tvm import relax
from tvm.ir import GenericConst, Op


class Dataflow:
    """Hold the bindings of a function; variables bound to other variables stand for these."""

    def __init__(self, function: relax.Function):
        self._values: dict[relax.Var, relax.Expr] = {}
        self._uses: Counter[relax.Var] = Counter()
        self._users: dict[relax.Var, list[relax.Var]] = {}
        self._calls: list[tuple[relax.Var, relax.Call]] = []
        if not isinstance(function.body, relax.SeqExpr):
            return
        for block in function.body.blocks:
            for binding in block.bindings:
                self._bind(binding)
        self._count(function.body.body, None)

    def _bind(self, binding: relax.Binding) -> None:
        value = binding.value
        if isinstance(binding, relax.MatchCast):
            self._count(value, binding.var)
            return
        self._values[binding.var] = value
        if isinstance(value, relax.Var):
            return  # another name, whose uses count as those of the value
        self._count(value, binding.var)
        if isinstance(value, relax.Call):
            self._calls.append((binding.var, value))

    def _count(self, expr: relax.Expr, user: relax.Var | None) -> None:
        if isinstance(expr, relax.Var):
            var = self.variable(expr)
            self._uses[var] += 1
            if user is not None:
                self._users.setdefault(var, []).append(user)
        elif isinstance(expr, relax.Tuple):
            for field in expr.fields:
                self._count(field, user)
        elif isinstance(expr, relax.TupleGetItem):
            self._count(expr.tuple_value, user)
        elif isinstance(expr, relax.Call):
            for argument in expr.args:
                self._count(argument, user)

    def calls(self) -> Iterator[tuple[relax.Var, relax.Call]]:
        """Yield the calls with their variables, in order."""
        return iter(self._calls)

    def variable(self, var: relax.Var) -> relax.Var:
        """Return the variable that `var` is another name of; itself if it is none."""
        while isinstance(value := self._values.get(var), relax.Var):
            var = value
        return var

    def value(self, expr: relax.Expr) -> relax.Expr:
        """Return the call, tuple or constant bound to `expr`; a parameter stands for itself."""
        if not isinstance(expr, relax.Var):
            return expr
        var = self.variable(expr)
        return self._values.get(var, var)

    def call(self, expr: relax.Expr, *operators: str) -> relax.Call | None:
        """Return the call bound to `expr` if its operator is one of `operators` (`relax.add`); else None."""
        value = self.value(expr)
        return value if isinstance(value, relax.Call) and operator_of(value) in operators else None

    def uses(self, expr: relax.Expr) -> int:
        """Count the operands, and outputs, that read a variable; an operand given twice counts twice."""
        return self._uses[self.variable(expr)] if isinstance(expr, relax.Var) else 1

    def users(self, expr: relax.Expr) -> tuple[relax.Var, ...]:
        """Return the variables whose values read a variable, in order, each once; the output is none of them."""
        if not isinstance(expr, relax.Var):
            return ()
        return tuple(dict.fromkeys(self._users.get(self.variable(expr), ())))

    def same(self, one: relax.Expr, other: relax.Expr) -> bool:
        """Tell whether two operands are one variable, or constants of the same bytes."""
        if isinstance(one, relax.Var) and isinstance(other, relax.Var):
            if self.variable(one).same_as(self.variable(other)):
                return True
        first, second = self.constant(one), self.constant(other)
        if first is None or second is None:
            return False
        return first.dtype == second.dtype and first.shape == second.shape and first.tobytes() == second.tobytes()

    def constant(self, expr: relax.Expr) -> np.ndarray | None:
        """Return the value of a constant; None for what is computed, and for dtypes that numpy lacks."""
        value = self.value(expr)
        if not isinstance(value, GenericConst):
            return None
        try:
            return value.value.numpy()
        except (TypeError, RuntimeError, ValueError):
            return None


def operator_of(call: relax.Call) -> str:
    """Return the name of a call's operator (`relax.nn.conv2d`); empty for calls of functions."""
    return str(call.op.name) if isinstance(call.op, Op) else ""


def shape_of(expr: relax.Expr) -> tuple[int, ...] | None:
    """Return the static shape of an expression with a type; None if it has none."""
    shape = getattr(getattr(expr, "ty", None), "shape", None)
    extents = getattr(shape, "values", None)
    if extents is None or not all(hasattr(extent, "value") for extent in extents):
        return None
    return tuple(int(extent) for extent in extents)


def dtype_of(expr: relax.Expr) -> str:
    """Return the dtype of an expression with a tensor type; empty if it has none."""
    return str(getattr(getattr(expr, "ty", None), "dtype", ""))
