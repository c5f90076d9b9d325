"""TVM's rules from operators to kernels, which remember what they made: a search legalizes the same calls in many graphs.

A rule sees the types of its operands, not their values, but for scalars: calls alike in these become calls of one kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import tvm
import tvm_ffi
from tvm import relax
from tvm.ir import GenericConst, IRModule, Op
from tvm.tirx import PrimFunc

Rule = Callable[[relax.BlockBuilder, relax.Call], relax.Expr]
#: rules that look at the values of tensors
_CURIOUS = ("relax.vision.",)


@dataclass(frozen=True)
class _Made:
    """The kernel, its name, the call of it, and which operands of the operator are the call's."""

    kernel: PrimFunc
    name: str
    call: relax.Call
    operands: tuple[int, ...]


@dataclass(frozen=True)
class _MemoisedRule:
    """What a rule sees of a call, and what it made: calls of one hash may differ."""

    attrs: object
    seen: list[object]
    made: _Made | None

    def is_of(self, attrs: object, seen: list[object]) -> bool:
        pairs = zip([self.attrs, *self.seen], [attrs, *seen])
        return len(self.seen) == len(seen) and all(tvm_ffi.structural_equal(one, other) for one, other in pairs)


_MADE: dict[tuple[object, ...], list[_MemoisedRule]] = {}


def memoised_rules(module: IRModule) -> dict[str, Rule]:
    """A rule for each operator that `main` calls, for LegalizeOps."""
    operators = {
        binding.value.op
        for block in module["main"].body.blocks
        for binding in block.bindings
        if isinstance(binding.value, relax.Call) and isinstance(binding.value.op, Op)
    }
    rules = {str(each.name): each.get_attr("FLegalize") for each in operators}
    return {name: _remembering(rule) for name, rule in rules.items() if rule and not name.startswith(_CURIOUS)}


def _remembering(rule: Rule) -> Rule:
    def legalize(builder: relax.BlockBuilder, call: relax.Call) -> relax.Expr:
        operands = [field for arg in call.args for field in _fields(arg)]
        if any(isinstance(each, relax.Var) and not _is_tensor(each) for each in operands):
            return rule(builder, call)
        seen = [each.ty if _is_tensor(each) else each for each in operands]
        key = (str(call.op.name), *map(tvm_ffi.structural_hash, (call.attrs, *seen)))
        alike = _MADE.setdefault(key, [])
        found = next((each for each in alike if each.is_of(call.attrs, seen)), None)
        if found is None:
            found = _MemoisedRule(call.attrs, seen, _made(rule, call))
            alike.append(found)
        made = found.made
        if made is None:
            return rule(builder, call)
        kernel = builder.add_func(made.kernel, made.name)
        arguments = relax.Tuple([operands[number] for number in made.operands])
        return relax.Call(made.call.op, [kernel, arguments], made.call.attrs, made.call.ty_args)

    return legalize


def _made(rule: Rule, call: relax.Call) -> _Made | None:
    """None where a rule makes more than one call, or one of other operands than it is given."""
    operands: list[relax.Expr] = []

    def stand_in(operand: relax.Expr) -> relax.Expr:
        operands.append(relax.Var(f"x{len(operands)}", operand.ty) if _is_tensor(operand) else operand)
        return operands[-1]

    # of names that hang on nothing that was made before
    arguments = [relax.Tuple(list(map(stand_in, arg.fields))) if isinstance(arg, relax.Tuple) else stand_in(arg) for arg in call.args]
    alone = relax.BlockBuilder()
    try:
        result = rule(alone, relax.Call(call.op, arguments, call.attrs, call.ty_args, ret_ty=call.ty))
    except tvm.error.InternalError:  # it needs a function to add bindings to, or fails, as it will again
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
    """Whether a rule sees its type only."""
    is_constant = isinstance(operand, GenericConst) and operand.ty.ndim > 0
    return is_constant or isinstance(operand, relax.Var) and isinstance(operand.ty, relax.TensorType)
