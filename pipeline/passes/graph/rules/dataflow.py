"""Read a Relax function as a graph of values: definitions, uses, shapes, constants."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
from tvm import relax
from tvm.ir import GenericConst, Op

from ....tir.tensor_values import array_of
from .operators import RESHAPES
from .small_constants import EVALUATED, small_result
from .static_types import dtype_of as dtype_of
from .static_types import shape_of as shape_of
from .static_types import static_shape as static_shape

#: elements compared before all are
_SAMPLE = 64
#: the same elements, perhaps in another order
MOVES = RESHAPES | {"relax.permute_dims"}


class Dataflow:
    """Hold the bindings of a function; variables bound to other variables stand for these."""

    #: constructors of Relax operators, so that rules need no import of TVM
    op = relax.op

    def __init__(self, function: relax.Function):
        # keyed by handle, since equality of TVM's objects is slow; each value holds the object, so that none is used twice
        self._values: dict[int, tuple[relax.Var, relax.Expr]] = {}
        self._uses: Counter[int] = Counter()
        self._users: dict[int, list[relax.Var]] = {}
        self._reads: Counter[int] = Counter()
        self._bindings: list[tuple[relax.Var, relax.Expr]] = []
        self._calls: list[tuple[str, relax.Var, relax.Call]] = []
        self._operators: dict[int, str] = {}
        self._shapes: dict[int, tuple[relax.Expr, tuple[int, ...] | None]] = {}
        self._arrays: dict[int, tuple[relax.Expr, np.ndarray | None]] = {}
        self._outputs: set[int] = set()
        if not isinstance(function.body, relax.SeqExpr):
            return
        for binding in bindings_of(function):
            self._bind(binding)
        self._count(function.body.body, None)

    def _bind(self, binding: relax.Binding) -> None:
        var, value = binding.var, binding.value
        if isinstance(binding, relax.MatchCast):
            self._count(value, var)
            return
        self._values[var.__chandle__()] = var, value
        if isinstance(value, relax.Var):
            return  # another name, whose uses count as those of the value
        self._count(value, var)
        self._bindings.append((var, value))
        if isinstance(value, relax.Call):
            name = self._operators[value.__chandle__()] = operator_of(value)
            self._calls.append((name, var, value))

    def _count(self, expr: relax.Expr, user: relax.Var | None) -> None:
        if isinstance(expr, relax.Var):
            key = self.variable(expr).__chandle__()
            self._uses[key] += 1
            if user is None:
                self._outputs.add(key)
            else:
                self._users.setdefault(key, []).append(user)
        elif isinstance(expr, GenericConst):
            self._reads[expr.value.__chandle__()] += 1
        else:
            for each in children(expr):
                self._count(each, user)

    def bindings(self) -> Iterator[tuple[relax.Var, relax.Expr]]:
        """Yield calls, tuples, items of tuples and constants with their variables, in order."""
        return iter(self._bindings)

    def calls(self, *operators: str) -> Iterator[tuple[relax.Var, relax.Call]]:
        """Yield the calls of these operators (`relax.add`), by default of all, with their variables, in order."""
        for name, var, call in self._calls:
            if not operators or name in operators:
                yield var, call

    def items(self) -> Iterator[tuple[relax.Var, relax.TupleGetItem, relax.Expr]]:
        """Yield the items taken out of tuples: variable, item, and the call or tuple it is taken from."""
        for var, value in self._bindings:
            if isinstance(value, relax.TupleGetItem):
                yield var, value, self.value(value.tuple_value)

    def variable(self, var: relax.Var) -> relax.Var:
        """Return the variable that `var` is another name of; itself if it is none."""
        while (bound := self._values.get(var.__chandle__())) is not None and isinstance(bound[1], relax.Var):
            var = bound[1]
        return var

    def value(self, expr: relax.Expr) -> relax.Expr:
        """Return the call, tuple or constant bound to `expr`; a parameter stands for itself."""
        if not isinstance(expr, relax.Var):
            return expr
        var = self.variable(expr)
        bound = self._values.get(var.__chandle__())
        return var if bound is None else bound[1]

    def operator(self, expr: relax.Expr) -> str:
        """Return the operator of the call bound to `expr` (`relax.add`); empty if it is not a call of an operator."""
        value = self.value(expr)
        if not isinstance(value, relax.Call):
            return ""
        found = self._operators.get(value.__chandle__())
        return operator_of(value) if found is None else found

    def call(self, expr: relax.Expr, *operators: str) -> relax.Call | None:
        """Return the call bound to `expr` if its operator is one of `operators` (`relax.add`); else None."""
        return self.value(expr) if self.operator(expr) in operators else None

    def shape(self, expr: relax.Expr) -> tuple[int, ...] | None:
        """Return the static shape of an expression with a type; None if it has none."""
        key = expr.__chandle__()
        if key not in self._shapes:
            self._shapes[key] = expr, shape_of(expr)
        return self._shapes[key][1]

    def static_shape(self, expr: relax.Expr) -> tuple[int, ...]:
        """Return the shape of an expression that is known to have a static one."""
        shape = self.shape(expr)
        return static_shape(expr) if shape is None else shape

    def dtype(self, expr: relax.Expr) -> str:
        """Return the dtype of an expression with a tensor type; empty if it has none."""
        return dtype_of(expr)

    def same_type(self, one: relax.Expr, other: relax.Expr) -> bool:
        """Return whether two tensors have one static shape and one dtype."""
        return self.shape(one) == self.shape(other) is not None and dtype_of(one) == dtype_of(other) != ""

    def fits(self, array: np.ndarray, expr: relax.Expr) -> bool:
        """Return whether an array has the static shape and the dtype of a tensor."""
        return array.shape == self.shape(expr) and str(array.dtype) == dtype_of(expr)

    def fields(self, expr: relax.Expr) -> tuple[relax.Expr, ...]:
        """Return the fields of a tuple, each a tensor or number; none of a tuple that a call returns."""
        value = self.value(expr)
        return tuple(value.fields) if isinstance(value, relax.Tuple) else ()

    def axes(self, call: relax.Call) -> tuple[int, ...]:
        """Return the axes of a transpose or reduction, counted from 0; the default if it names none."""
        return axes_of(call)

    def tensors(self, call: relax.Call) -> tuple[relax.Expr, ...]:
        """Return the operands of a call that are tensors; numbers, shapes and tuples are none."""
        return tuple(each for each in call.args if isinstance(getattr(each, "ty", None), relax.TensorType))

    def like(self, call: relax.Call, operands: Sequence[relax.Expr]) -> relax.Call:
        """Return a call of the same operator and attributes; `operands` take the places of its tensors."""
        given = iter(operands)
        arguments = [next(given) if isinstance(getattr(e, "ty", None), relax.TensorType) else e for e in call.args]
        return relax.Call(call.op, arguments, call.attrs, call.ty_args)

    def with_arguments(self, call: relax.Call, arguments: Sequence[relax.Expr]) -> relax.Call:
        """Return a call of the same operator and attributes with other arguments."""
        return relax.Call(call.op, list(arguments), call.attrs, call.ty_args)

    def constants(self) -> tuple[relax.Expr, ...]:
        """Return the constants among the operands of calls, each object once, in order."""
        found = dict[relax.Expr, None]()
        for _, value in self._bindings:
            for each in value.args if isinstance(value, relax.Call) else ():
                fields = each.fields if isinstance(each, relax.Tuple) else (each,)
                found.update((field, None) for field in fields if isinstance(field, GenericConst))
        return tuple(found)

    def const(self, array: np.ndarray) -> relax.Expr:
        """Return a constant of the value and dtype of `array`."""
        # TVM would make int64 int32 and float64 float32 if it was not told
        return relax.const(np.ascontiguousarray(array) if array.ndim else array, str(array.dtype))

    def scalar(self, value: float, dtype: str) -> relax.Expr:
        """Return a constant without axes."""
        return relax.const(value, dtype)

    def is_variable(self, expr: relax.Expr) -> bool:
        """Return whether an operand is computed, or a parameter: no constant."""
        return isinstance(expr, relax.Var) and self.constant(expr) is None

    def identity(self, expr: relax.Expr) -> relax.Expr:
        """Return a key equal for operands that are one variable or one constant object."""
        return self.variable(expr) if isinstance(expr, relax.Var) else expr

    def uses(self, expr: relax.Expr) -> int:
        """Count the operands, and outputs, that read a variable; an operand given twice counts twice."""
        return self._uses[self.variable(expr).__chandle__()] if isinstance(expr, relax.Var) else 1

    def users(self, expr: relax.Expr) -> tuple[relax.Var, ...]:
        """Return the variables whose values read a variable, in order, each once; the output is none of them."""
        if not isinstance(expr, relax.Var):
            return ()
        return tuple(dict.fromkeys(self._users.get(self.variable(expr).__chandle__(), ())))

    def is_output(self, expr: relax.Expr) -> bool:
        """Return whether the function returns a variable."""
        return isinstance(expr, relax.Var) and self.variable(expr).__chandle__() in self._outputs

    def is_shared(self, expr: relax.Expr) -> bool:
        """Return whether several operands read a constant object: another form of it would be a second one."""
        value = self.value(expr)
        while isinstance(value, relax.Call) and self.operator(value) in MOVES:
            value = self.value(value.args[0])
        return isinstance(value, GenericConst) and self._reads[value.value.__chandle__()] > 1

    def is_owned(self, expr: relax.Expr) -> bool:
        """Return whether one operand alone reads a constant, also if it is moved first: it may take another form."""
        while self.uses(expr) == 1 and (call := self.call(expr, *MOVES)) is not None:
            expr = call.args[0]
        return self.uses(expr) == 1 and not self.is_shared(expr)

    def same(self, one: relax.Expr, other: relax.Expr) -> bool:
        """Return whether two operands are one variable, or constants of the same bytes."""
        if (
            isinstance(one, relax.Var)
            and isinstance(other, relax.Var)
            and self.variable(one).same_as(self.variable(other))
        ):
            return True
        if self.shape(one) != self.shape(other):
            return False
        first, second = self.constant(one), self.constant(other)
        if first is None or second is None:
            return False
        return first.dtype == second.dtype and first.tobytes() == second.tobytes()

    def constant(self, expr: relax.Expr) -> np.ndarray | None:
        """Return the value of a constant, not to be written to; None for computed values and dtypes foreign to numpy."""
        value = self.value(expr)
        if isinstance(value, relax.Call):
            return self._compute_constant(value)
        if not isinstance(value, GenericConst):
            return None
        key = value.__chandle__()
        if key not in self._arrays:
            self._arrays[key] = value, _array_of(value)
        return self._arrays[key][1]

    def _compute_constant(self, call: relax.Call) -> np.ndarray | None:
        """Return the value of a constant moved, which costs nothing, or of a small one computed: shapes and positions."""
        name = self.operator(call)
        if name not in EVALUATED and name not in MOVES:
            return None
        key = call.__chandle__()
        if key not in self._arrays:
            self._arrays[key] = call, self._evaluate(name, call)
        return self._arrays[key][1]

    def _evaluate(self, name: str, call: relax.Call) -> np.ndarray | None:
        shape = self.shape(call)
        if name == "relax.shape_to_tensor":
            extents = self.call(call.args[0], "relax.shape_of")
            known = None if extents is None else shape_of(extents.args[0])
            return None if known is None else np.array(known, "int64")
        operands = [each for each in call.args if not isinstance(each, relax.ShapeExpr)]
        arrays = [array for each in operands if (array := self.constant(each)) is not None]
        if shape is None or len(arrays) < len(operands):
            return None
        if name in MOVES:
            return self.move(call, arrays[0])
        axis = getattr(call.attrs, "axis", None)
        value = small_result(name, arrays, None if axis is None else int(axis))
        return None if value is None else value.astype(dtype_of(call))

    def move(self, call: relax.Call, array: np.ndarray) -> np.ndarray:
        """Return the elements of an array as a call of MOVES leaves them."""
        is_transpose = self.operator(call) == "relax.permute_dims"
        return array.transpose(self.axes(call)) if is_transpose else array.reshape(self.static_shape(call))

    def uniform(self, expr: relax.Expr) -> np.generic | None:
        """Return the one value of all elements of a constant; None for others, for empty ones, and for NaN."""
        array = self.constant(expr)
        if array is None or not array.size:
            return None
        first = array.flat[0]
        some = array.flat[:_SAMPLE]  # weights differ here already
        return first if (some == first).all() and (array == first).all() else None


def bindings_of(function: relax.Function) -> Iterator[relax.Binding]:
    """Yield the bindings of a function, in order."""
    return (binding for block in function.body.blocks for binding in block.bindings)


def children(expr: relax.Expr) -> list[relax.Expr]:
    """List the expressions directly inside one: operands, fields, and the free variables of branches and functions."""
    if isinstance(expr, relax.Call):
        return list(expr.args)
    if isinstance(expr, relax.Tuple):
        return list(expr.fields)
    if isinstance(expr, relax.TupleGetItem):
        return [expr.tuple_value]
    if isinstance(expr, relax.If | relax.Function | relax.SeqExpr):
        return list(relax.analysis.free_vars(expr))
    return []


def _array_of(constant: GenericConst) -> np.ndarray | None:
    try:
        return array_of(constant.value)
    except (TypeError, RuntimeError, ValueError):
        return None


def axes_of(call: relax.Call) -> tuple[int, ...]:
    """Return the axes of a transpose or reduction, counted from 0; the default if it names none."""
    rank, transposes = len(call.args[0].ty.shape), operator_of(call) == "relax.permute_dims"
    axes = call.attrs.axes if transposes else call.attrs.axis
    if axes is None:
        return tuple(range(rank))[:: -1 if transposes else 1]
    return tuple(int(axis) % rank for axis in (axes if hasattr(axes, "__len__") else [axes]))


def operator_of(call: relax.Call) -> str:
    """Return the name of a call's operator (`relax.nn.conv2d`); empty for calls of functions."""
    return str(call.op.name) if isinstance(call.op, Op) else ""
