"""Evaluates the kernel calls of a legalized module whose arguments are constants. Imports TVM."""

from __future__ import annotations

import math

import tvm
from tvm import relax
from tvm.ir import GenericConst, IRModule, Op
from tvm.relax.expr_functor import PyExprMutator, mutator
from tvm.tirx import PrimFunc

from .by_structure import ByStructure
from .host import HOST

_COMPILED: ByStructure[tvm.runtime.Function] = ByStructure()


def fold(module: IRModule, *, may_grow: bool) -> IRModule:
    """`module` with every foldable call of `main` replaced by its value; kernels nothing calls any more stay."""
    calls = _foldable_calls(module, may_grow)
    if not calls:
        return module
    values = _evaluate(module, calls)
    folded = _Replace(values).visit_expr(module["main"])
    result = IRModule(module.functions, attrs=module.attrs)
    result.update_func(module.get_global_var("main"), folded)
    return relax.transform.DeadCodeElimination()(result)


def _foldable_calls(module: IRModule, may_grow: bool) -> dict[relax.Var, relax.Call]:
    """Calls of kernels whose arguments are constants, or results of such calls; in order."""
    found: dict[relax.Var, relax.Call] = {}
    call_tir = Op.get("relax.call_tir")
    for block in module["main"].body.blocks:
        for binding in block.bindings:
            call = binding.value
            if not (isinstance(call, relax.Call) and call.op == call_tir and isinstance(call.ty, relax.TensorType)):
                continue
            arguments = list(call.args[1].fields)
            if len(call.args) > 2 or not all(isinstance(a, GenericConst) or a in found for a in arguments):
                continue
            if isinstance(module[call.args[0]], PrimFunc) and (may_grow or _shrinks(call, arguments)):
                found[binding.var] = call
    return found


def _shrinks(call: relax.Call, arguments: list[relax.Expr]) -> bool:
    return _nbytes(call.ty) <= sum(_nbytes(argument.ty) for argument in arguments)


def _nbytes(kind: relax.TensorType) -> int:
    return math.prod(int(extent) for extent in kind.shape) * -(-tvm.DataType(str(kind.dtype)).bits // 8)


def _evaluate(module: IRModule, calls: dict[relax.Var, relax.Call]) -> dict[relax.Var, GenericConst]:
    compiled = _compiled({call.args[0].name_hint: module[call.args[0]] for call in calls.values()})
    values: dict[relax.Var, GenericConst] = {}
    for var, call in calls.items():
        shape = tuple(int(extent) for extent in call.ty.shape)
        result = tvm.runtime.empty(shape, str(call.ty.dtype))
        arguments = [a.value if isinstance(a, GenericConst) else values[a].value for a in call.args[1].fields]
        compiled[call.args[0].name_hint](*arguments, result)
        values[var] = relax.const(result)
    return values


def _compiled(kernels: dict[str, PrimFunc]) -> dict[str, tvm.runtime.Function]:
    """The kernels, to be called. A search folds the same ones in many graphs; those that are new are built together."""
    new = {name: kernel for name, kernel in sorted(kernels.items()) if _COMPILED.get(kernel) is None}
    if new:
        target = tvm.target.Target(HOST)
        named = {name: kernel.with_attr("global_symbol", name) for name, kernel in new.items()}
        built = tvm.tirx.build(IRModule(named), target=tvm.target.Target(target, host=target))
        for name, kernel in new.items():
            _COMPILED.put(built[name], kernel)
    return {name: _COMPILED.get(kernel) for name, kernel in kernels.items()}


@mutator
class _Replace(PyExprMutator):
    """Drops the bindings of folded variables and puts constants where they were read."""

    def __init__(self, values: dict[relax.Var, GenericConst]):
        super().__init__()
        self._values = values

    def visit_var_binding_(self, binding: relax.VarBinding) -> None:
        if binding.var not in self._values:
            super().visit_var_binding_(binding)

    def visit_var_(self, var: relax.Var) -> relax.Expr:
        return self._values[var] if var in self._values else super().visit_var_(var)

    def visit_dataflow_var_(self, var: relax.DataflowVar) -> relax.Expr:
        return self._values[var] if var in self._values else super().visit_dataflow_var_(var)
