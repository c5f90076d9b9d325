"""Query TIR expressions: variables, loads, conditions, contiguity."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import TypeVar

import tvm
import tvm_ffi
from tvm import sym, tirx
from tvm.ir import Call, Expr, StringImm, TensorLoad, Var
from tvm.tirx import And, BufferStore, Cast, FloatImm, IntImm, PrimFunc, Select
from tvm.tirx.analysis import undefined_vars

from ..program.mapping import FUNCTION_COST

_Part = TypeVar("_Part")

#: functions that `codegen/vector_math.py` writes as a polynomial each
FUNCTIONS = ("tirx.exp", "tirx.sigmoid", "tirx.tanh", "tirx.erf")

#: how a reduction joins its accumulator with another, by the kind of its update
COMBINED: dict[str, Callable[[Expr, Expr], Expr]] = {
    "Add": lambda one, other: one + other, "Max": tirx.max, "Min": tirx.min,
}  # fmt: skip

#: expressions that no instruction computes; strings are the reasons of checks
_LEAVES = (Var, IntImm, FloatImm, StringImm)

#: fields under which TIR's expressions and stores keep their children
_PARTS = (
    "a", "b", "value", "condition", "true_value", "false_value", "args", "indices", "base", "stride", "vectors", "body",
)  # fmt: skip


#: the subset of _PARTS each type has; asking a TVM object for a missing attribute is slow
_HAS: dict[type, tuple[str, ...]] = {}


def walk(expr: object) -> Iterator[object]:
    """Yield `expr` and all its descendants, parents first."""
    left = [expr]
    while left:
        one = left.pop()
        yield one
        left.extend(reversed(parts(one)))


def parts(expr: object) -> list[object]:
    """Return the direct children of `expr`."""
    kind = type(expr)
    if kind not in _HAS:
        _HAS[kind] = tuple(name for name in _PARTS if hasattr(kind, name))
    found: list[object] = []
    for name in _HAS[kind]:
        part = getattr(expr, name)
        if part is not None and not isinstance(part, (str, int, float)):
            found.extend(part if hasattr(part, "__len__") else (part,))
    return found


def replaced(part: _Part, values: Mapping[Var, Expr]) -> _Part:
    """Substitute values for variables in an expression or a statement."""
    return tvm_ffi.structural_map(part, (Var, lambda var: values.get(var, var)))


def map_body(kernel: PrimFunc, *maps: tuple) -> PrimFunc:
    """Replace the nodes of some kinds in a kernel; return the same kernel if none changes."""
    body = tvm_ffi.structural_map(kernel.body, list(maps))
    return kernel if body.same_as(kernel.body) else kernel.with_body(body)


def with_loads(part: _Part, buffer: Var, value: Expr) -> _Part:
    """Replace the loads from a buffer by a value."""
    return tvm_ffi.structural_map(part, (TensorLoad, lambda each: value if each.source.same_as(buffer) else each))


def collect(part: object, *kinds: type[_Part]) -> list[_Part]:
    """List the nodes of some kinds in an expression or a statement, children first."""
    found: list[_Part] = []
    tvm_ffi.structural_walk(part, (kinds, found.append))
    return found


def loads(expr: object) -> list[TensorLoad]:
    return collect(expr, TensorLoad)


def reads(part: object, *buffers: Var) -> bool:
    """Return whether an expression or a statement loads an element of one of the buffers."""
    return any(load.source.same_as(buffer) for load in loads(part) for buffer in buffers)


@cache
def dtype_bytes(dtype: str) -> int:
    """Return the bytes of a value, of all lanes together for a vector."""
    parsed = tvm.DataType(dtype)
    return -(-parsed.bits * parsed.lanes // 8)


def element_bytes(buffer: Var) -> int:
    return dtype_bytes(str(buffer.ty.dtype))


def operations_of(expr: object) -> int:
    """Count the arithmetic of a value without its indices; a choice by position counts as none."""
    return sum(operation_cost(each) for each in computed(expr) if not isinstance(each, TensorLoad))


def computed(value: object) -> Iterator[Expr]:
    """Yield the operations and loads of a value without those of its indices; a choice by position is none."""
    if isinstance(value, TensorLoad):
        yield value
    elif isinstance(value, Expr) and not isinstance(value, _LEAVES):
        values = values_by_position(value)
        if values is None:
            yield value
        for each in parts(value) if values is None else values:
            yield from computed(each)


def values_by_position(expr: object) -> tuple | None:
    """Return both values of a choice by position; None for other expressions."""
    choice = choice_of(expr)
    return None if choice is None or loads(choice[0]) else choice[1:]


def operation_cost(expr: object) -> int:
    """Return the operations of one node of an expression: more for a function written as a polynomial."""
    return FUNCTION_COST if isinstance(expr, Call) and getattr(expr.op, "name", "") in FUNCTIONS else 1


def is_costly(part: object) -> bool:
    """Return whether an expression or a statement calls one of FUNCTIONS."""
    return any(getattr(call.op, "name", "") in FUNCTIONS for call in collect(part, Call))


def has_condition(expr: object) -> bool:
    """Return whether part of `expr` runs only under a condition (`if_then_else`, as padding is written)."""
    return any(map(is_choice, collect(expr, Call)))


def is_choice(expr: object) -> bool:
    """Return whether `expr` is a call of `if_then_else`."""
    return getattr(getattr(expr, "op", None), "name", "") == "prim.if_then_else"


def choice_of(expr: object) -> tuple | None:
    """Return condition and both values of a select or `if_then_else`; None for other expressions."""
    if isinstance(expr, Select):
        return expr.condition, expr.true_value, expr.false_value
    if isinstance(expr, Call) and is_choice(expr):
        return tuple(expr.args)
    return None


def fold_choice(expr: Expr) -> Expr:
    """Return the value that a choice by a constant takes; another expression as it is."""
    choice = choice_of(expr)
    if choice is None or not isinstance(choice[0], IntImm):
        return expr
    return choice[1] if int(choice[0]) else choice[2]


def chosen_places(expr: object) -> list[TensorLoad]:
    """List the loads between which a condition chooses that reads nothing: both of each choice."""
    choices = (values_by_position(each) or () for each in collect(expr, Select, Call))
    return [place for places in choices if all(isinstance(each, TensorLoad) for each in places) for place in places]


def accumulation(store: BufferStore) -> tuple[TensorLoad, Expr] | None:
    """Return the accumulator and the term that the update of a reduction combines; None for another store."""
    if type(store.value).__name__ in COMBINED:
        for one, other in ((store.value.a, store.value.b), (store.value.b, store.value.a)):
            if isinstance(one, TensorLoad) and one.source.same_as(store.buffer):
                return one, other
    return None


def combined_term(store: BufferStore) -> Expr:
    """Return the operand that the update of a reduction combines with its accumulator."""
    found = accumulation(store)
    assert found is not None, "the store is no update"
    return found[1]


def unconverted(expr: Expr) -> Expr:
    """Return the operand of nested conversions to other dtypes."""
    while isinstance(expr, Cast):
        expr = expr.value
    return expr


def is_dequantised(expr: Expr) -> bool:
    """Return whether an expression reads bytes as floats: weights that are quantised alone."""
    return str(expr.ty.dtype).startswith("float") and any(
        str(load.source.ty.dtype) in ("int8", "uint8") for load in loads(expr)
    )


def is_true(predicate: Expr) -> bool:
    """Return whether a condition is known to hold."""
    return isinstance(predicate, IntImm) and bool(int(predicate))


def is_one(extent: Expr) -> bool:
    """Return whether an extent is known to be 1."""
    return isinstance(extent, IntImm) and int(extent) == 1


def uses(expr: object, var: Var) -> bool:
    return any(var.same_as(each) for each in undefined_vars(expr))


def is_among(expr: Expr, others: Iterable[Expr]) -> bool:
    """Return whether an expression equals one of others in structure."""
    return any(tvm_ffi.structural_equal(expr, each) for each in others)


def distinct(exprs: Iterable[Expr]) -> list[Expr]:
    """List expressions of different structure, the first of each."""
    found: list[Expr] = []
    for expr in exprs:
        if not is_among(expr, found):
            found.append(expr)
    return found


def is_contiguous(expr: object, var: Var) -> bool:
    """Return whether one step of `var` moves each dependent load by one element."""
    return all(_step_of_one(load.indices, var) for load in loads(expr) if any(uses(i, var) for i in load.indices))


def _step_of_one(indices: Sequence[Expr], var: Var) -> bool:
    if any(uses(index, var) for index in indices[:-1]):
        return False
    linear = sym.detect_linear_equation(indices[-1], [var])
    return bool(linear) and sym.Analyzer().can_prove_equal(linear[0], 1)


def conjuncts(condition: Expr) -> list[Expr]:
    """Split `condition` into the conditions it is the conjunction of."""
    if isinstance(condition, And):
        return [*conjuncts(condition.a), *conjuncts(condition.b)]
    return [condition]
