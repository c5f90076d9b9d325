"""Evaluate kernel calls with constant arguments in a legalized module. Imports TVM."""

from __future__ import annotations

import math
from collections.abc import Container
from functools import partial

import tvm
import tvm_ffi
from tvm import relax
from tvm.ir import Call, GenericConst, IRModule, Op
from tvm.tirx import PrimFunc

from ....frontend.relax.checked import CHECKED
from ....tir import HOST
from ....tir.expressions import dtype_bytes
from ....tir.memoise import FoldedValues, Tensors, memoise_by_structure
from ..rules.dataflow import bindings_of
from ..rules.replace_values import replace_values
from .evaluate_kernel import values_of

_FOLDED = FoldedValues()


def fold_constants(module: IRModule, *, may_grow: bool) -> IRModule:
    """Replace each foldable call of `main` by its value and remove dead bindings.

    Kernels without callers stay. Without `may_grow`, calls with results larger than their arguments stay too.
    """
    folded = _foldable(module, may_grow)
    if folded:
        module = replace_values(module, _evaluate(module, folded))
    return relax.transform.DeadCodeElimination()(module)


def folds_more(module: IRModule) -> bool:
    """Return whether `fold_constants` folds more than TVM's FoldConstant, which keeps items of folded tuples."""
    return any(isinstance(value, relax.TupleGetItem) for value in _foldable(module, may_grow=True).values())


def _foldable(module: IRModule, may_grow: bool) -> dict[relax.Var, relax.Expr]:
    """Collect foldable bindings in order: kernel calls on constants or folded values, and items of folded tuples."""
    found: dict[relax.Var, relax.Expr] = {}
    for binding in bindings_of(module["main"]):
        value = binding.value
        if isinstance(value, relax.TupleGetItem):
            folds = value.tuple_value in found
        else:
            folds = _is_foldable(value, module, found, may_grow)
        if folds:
            found[binding.var] = value
    return found


def _is_foldable(call: relax.Expr, module: IRModule, found: Container[relax.Var], may_grow: bool) -> bool:
    if not isinstance(call, relax.Call) or call.op != Op.get("relax.call_tir") or len(call.args) > 2:
        return False
    arguments, results = list(call.args[1].fields), _results(call)
    if not all(isinstance(each, relax.TensorType) for each in results):
        return False
    if not all(isinstance(each, GenericConst) or each in found for each in arguments):
        return False
    kernel = module[call.args[0]]
    if not isinstance(kernel, PrimFunc) or _checks(kernel):
        return False
    return may_grow or sum(map(_nbytes, results)) <= sum(_nbytes(argument.ty) for argument in arguments)


def _checks(kernel: PrimFunc) -> bool:
    """Return whether a kernel checks numbers as it runs, which the library does: nothing is read by an unchecked index."""
    found: list[bool] = []
    tvm_ffi.structural_walk(kernel.body, (Call, lambda call: found.append(getattr(call.op, "name", "") == CHECKED)))
    return any(found)


def _results(call: relax.Call) -> list[relax.Type]:
    return list(call.ty.fields) if isinstance(call.ty, relax.TupleType) else [call.ty]


def _nbytes(kind: relax.TensorType) -> int:
    return math.prod(int(extent) for extent in kind.shape) * dtype_bytes(str(kind.dtype))


def _evaluate(module: IRModule, folded: dict[relax.Var, relax.Expr]) -> dict[relax.Var, relax.Expr]:
    """Evaluate folded bindings to constants; a call with several results gives a tuple of constants."""
    values: dict[relax.Var, relax.Expr] = {}
    for var, value in folded.items():
        if isinstance(value, relax.TupleGetItem):
            values[var] = values[value.tuple_value].fields[value.index]
            continue
        arguments = [(a if isinstance(a, GenericConst) else values[a]).value for a in value.args[1].fields]
        kernel, kinds = module[value.args[0]], _results(value)
        results = _FOLDED.get_or_make(kernel, arguments, partial(_call, kernel, arguments, kinds))
        constants = list(map(relax.const, results))
        values[var] = relax.Tuple(constants) if isinstance(value.ty, relax.TupleType) else constants[0]
    return values


def _call(kernel: PrimFunc, arguments: Tensors, kinds: list[relax.TensorType]) -> Tensors:
    """Run a kernel and return its results, of types `kinds`.

    Compiled kernels are cached: a search folds the same ones in many graphs.
    """
    simple = values_of(kernel, arguments)
    if simple is not None:
        return simple
    results = [tvm.runtime.empty(tuple(int(extent) for extent in kind.shape), str(kind.dtype)) for kind in kinds]
    _compile(kernel)(*arguments, *results)
    return results


@memoise_by_structure
def _compile(kernel: PrimFunc) -> tvm.runtime.Function:
    target = tvm.target.Target(HOST)
    named = IRModule({"kernel": kernel.with_attr("global_symbol", "kernel")})
    return tvm.tirx.build(named, target=tvm.target.Target(target, host=target))["kernel"]
