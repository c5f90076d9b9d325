"""Give variables of a Relax module new values of equal type, and drop the values no longer read."""

from __future__ import annotations

from collections.abc import Mapping

import tvm_ffi
from tvm import relax
from tvm.ir import IRModule


def replace_values(module: IRModule, replacements: Mapping[relax.Var, relax.Expr]) -> IRModule:
    """Return `module` with these variables of `main` bound to their new values.

    A replacement is a variable, constant, tuple or (nested) call over variables bound before. Raises TypeError for a
    replacement of other shape or dtype: a bug of its rule.
    """
    mutator = _Replacer(module, replacements)
    main = module.get_global_var("main")
    mutator.builder_.update_func(main, mutator.visit_expr(module["main"]))
    return relax.transform.DeadCodeElimination()(mutator.builder_.get())


@relax.expr_functor.mutator
class _Replacer(relax.PyExprMutator):
    def __init__(self, module: IRModule, replacements: Mapping[relax.Var, relax.Expr]):
        super().__init__(module)
        self._replacements = replacements
        self._emitted: dict[relax.Call, relax.Var] = {}

    def visit_var_binding_(self, binding: relax.VarBinding) -> None:
        new = self._replacements.get(binding.var)
        if new is None:
            super().visit_var_binding_(binding)
            return
        value = self.builder_.normalize(self._value(new, binding.var.name))
        if not tvm_ffi.structural_equal(value.ty, binding.var.ty):
            raise TypeError(f"a rule replaced a value of {binding.var.ty} by one of {value.ty}")
        super().visit_var_binding_(relax.VarBinding(binding.var, value))

    def _value(self, expr: relax.Expr, name: str) -> relax.Expr:
        """Return `expr` over variables of the new function; emit the calls inside it."""
        if isinstance(expr, relax.Call):
            if expr in self._emitted:
                return self._emitted[expr]
            return relax.Call(expr.op, [self._operand(each, name) for each in expr.args], expr.attrs, expr.ty_args)
        if isinstance(expr, relax.Tuple):
            return relax.Tuple([self._operand(each, name) for each in expr.fields])
        if isinstance(expr, relax.TupleGetItem):
            return relax.TupleGetItem(self._operand(expr.tuple_value, name), expr.index)
        return self.visit_expr(expr)

    def _operand(self, expr: relax.Expr, name: str) -> relax.Expr:
        value = self._value(expr, name)
        if not isinstance(expr, relax.Call) or expr in self._emitted:
            return value
        self._emitted[expr] = self.builder_.emit(value, name)
        return self._emitted[expr]
