"""Memoise TVM's legalization rules: a search legalizes the same calls in many graphs.

A rule sees the types of its operands, and values only of scalars: calls alike in these become calls of one kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import tvm
import tvm_ffi
from tvm import relax
from tvm.ir import GenericConst, IRModule, Op
from tvm.tirx import PrimFunc

from .rules.dataflow import bindings_of

Rule = Callable[[relax.BlockBuilder, relax.Call], relax.Expr]
#: prefixes of operators with rules that read values of tensors: never memoised
_CURIOUS = ("relax.vision.",)


@dataclass(frozen=True)
class _Made:
    """Result of a rule: kernel, name and call.

    `operands` are the numbers of the operator's operands that the call passes.
    """

    kernel: PrimFunc
    name: str
    call: relax.Call
    operands: tuple[int, ...]


@dataclass(frozen=True)
class _MemoisedRule:
    """Attributes and operands of a call, with the rule's result; told apart here, since hashes may collide."""

    attrs: object
    seen: list[object]
    made: _Made | None

    def is_of(self, attrs: object, seen: list[object]) -> bool:
        pairs = zip([self.attrs, *self.seen], [attrs, *seen])
        return len(self.seen) == len(seen) and all(tvm_ffi.structural_equal(one, other) for one, other in pairs)


_MADE: dict[tuple[object, ...], list[_MemoisedRule]] = {}


def memoised_rules(module: IRModule, own: Mapping[str, Rule] = {}) -> dict[str, Rule]:
    """Return a memoising rule for each operator called by `main`, for LegalizeOps; `own` go before TVM's."""
    operators = {
        binding.value.op
        for binding in bindings_of(module["main"])
        if isinstance(binding.value, relax.Call) and isinstance(binding.value.op, Op)
    }
    rules = {str(each.name): own.get(str(each.name)) or each.get_attr("FLegalize") for each in operators}
    return {
        name: _remembering(rule, name in own) for name, rule in rules.items() if rule and not name.startswith(_CURIOUS)
    }


def _remembering(rule: Rule, own: bool) -> Rule:
    def legalize(builder: relax.BlockBuilder, call: relax.Call) -> relax.Expr:
        operands = [field for arg in call.args for field in _fields(arg)]
        if any(isinstance(each, relax.Var) and not _is_tensor(each) for each in operands):
            return rule(builder, call)
        seen = [each.ty if _is_tensor(each) else each for each in operands]
        key = (str(call.op.name), own, *map(tvm_ffi.structural_hash, (call.attrs, *seen)))
        alike = _MADE.setdefault(key, [])
        found = next((each for each in alike if each.is_of(call.attrs, seen)), None)
        if found is None:
            found = _MemoisedRule(call.attrs, seen, _apply(rule, call))
            alike.append(found)
        made = found.made
        if made is None:
            return rule(builder, call)
        kernel = builder.add_func(made.kernel, made.name)
        arguments = relax.Tuple([operands[number] for number in made.operands])
        return relax.Call(made.call.op, [kernel, arguments], made.call.attrs, made.call.ty_args)

    return legalize


def _apply(rule: Rule, call: relax.Call) -> _Made | None:
    """Apply a rule to placeholders; None unless it returns a single kernel call on its own operands."""
    operands: list[relax.Expr] = []

    def stand_in(operand: relax.Expr) -> relax.Expr:
        operands.append(relax.Var(f"x{len(operands)}", operand.ty) if _is_tensor(operand) else operand)
        return operands[-1]

    # a builder of its own, so that names do not depend on earlier calls
    arguments = [
        relax.Tuple(list(map(stand_in, arg.fields))) if isinstance(arg, relax.Tuple) else stand_in(arg)
        for arg in call.args
    ]
    alone = relax.BlockBuilder()
    try:
        result = rule(alone, relax.Call(call.op, arguments, call.attrs, call.ty_args, ret_ty=call.ty))
    except tvm.error.InternalError:  # the rule needs an enclosing function, or fails, as it will again
        return None
    if not isinstance(result, relax.Call) or result.op != Op.get("relax.call_tir") or len(result.args) != 2:
        return None
    places = []
    for argument in result.args[1].fields:
        found = [number for number, operand in enumerate(operands) if operand.same_as(argument)]
        if not found:
            return None
        places.append(found[0])
    variable = result.args[0]
    return _Made(alone.get()[variable], str(variable.name_hint), result, tuple(places))


def _fields(argument: relax.Expr) -> list[relax.Expr]:
    return list(argument.fields) if isinstance(argument, relax.Tuple) else [argument]


def _is_tensor(operand: relax.Expr) -> bool:
    """Return whether an operand is a tensor, of which a rule sees only the type."""
    is_constant = isinstance(operand, GenericConst) and operand.ty.ndim > 0
    return is_constant or (isinstance(operand, relax.Var) and isinstance(operand.ty, relax.TensorType))
