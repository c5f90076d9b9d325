"""Assign new values of equal type to variables of a Relax module; drop the values no longer read.

Bindings that read no replaced value stay the same objects, so the cost is that of the change, not of the graph.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import tvm_ffi
from tvm import relax
from tvm.ir import GenericConst, IRModule

from .dataflow import children


def replace_values(module: IRModule, replacements: Mapping[relax.Var, relax.Expr]) -> IRModule:
    """Return `module` with these variables of `main` bound to their new values.

    A replacement is a variable, constant, tuple or (nested) call over variables bound before. Raises TypeError for a
    replacement of other shape or dtype: a bug of its rule.
    """
    main = module["main"]
    rebuilt = _Rebuild(module, replacements)
    blocks = [rebuilt.block(block) for block in main.body.blocks]
    body = relax.SeqExpr(_live(blocks, main.body.body), main.body.body)
    relax.expr._update_type(body, main.body.ty)
    result = IRModule(module.functions, attrs=module.attrs, global_infos=module.global_infos)
    result.update_func(
        module.get_global_var("main"),
        relax.Function(main.params, body, main.ret_ty, main.is_pure, main.attrs, main.span),
    )
    return result


class _Rebuild:
    """Copy blocks of bindings with the replacements in place."""

    def __init__(self, module: IRModule, replacements: Mapping[relax.Var, relax.Expr]):
        self._replacements = replacements
        self._builder = relax.BlockBuilder(module)
        self._renamed: dict[relax.Var, relax.Expr] = {}
        self._emitted: dict[relax.Expr, relax.Var] = {}
        self._bindings: list[relax.Binding] = []
        self._variable = relax.Var

    def block(self, block: relax.BindingBlock) -> relax.BindingBlock:
        self._bindings = []
        self._variable = relax.DataflowVar if isinstance(block, relax.DataflowBlock) else relax.Var
        for binding in block.bindings:
            self._bind(binding)
        return type(block)(self._bindings)

    def _bind(self, binding: relax.Binding) -> None:
        var = binding.var
        if isinstance(binding, relax.MatchCast):
            self._bindings.append(relax.MatchCast(var, self._substitute(binding.value), binding.ty))
            return
        new, old = self._replacements.get(var), binding.value
        value = self._substitute(old) if new is None else self._value(new, var.name)
        if new is not None and not tvm_ffi.structural_equal(value.ty, var.ty):
            raise TypeError(f"a rule replaced a value of {var.ty} by one of {value.ty}")
        if isinstance(new, relax.Call) and isinstance(value, relax.Call):
            self._emitted[new] = var  # another replacement may hold it
        if isinstance(value, relax.Var | GenericConst) and isinstance(var, relax.DataflowVar):
            self._renamed[var] = value
        elif value is old:
            self._bindings.append(binding)
        else:
            self._bindings.append(relax.VarBinding(var, value))

    def _value(self, expr: relax.Expr, name: str) -> relax.Expr:
        """Return `expr` over variables of the new function; emit the calls inside it first, without recursion."""
        waiting = [expr]
        while waiting:
            each = waiting[-1]
            inside = [one for one in _nested_calls(each) if one not in self._emitted]
            waiting.extend(inside)
            if inside:
                continue
            waiting.pop()
            if waiting and each not in self._emitted:
                value = self._flat(each)
                var = self._emitted[each] = self._variable(name, value.ty)
                self._bindings.append(relax.VarBinding(var, value))
        return self._flat(expr)

    def _flat(self, expr: relax.Expr) -> relax.Expr:
        """Return `expr` with emitted variables for the calls inside it."""
        return self._builder.normalize(self._flat_operand(expr))

    def _flat_operand(self, expr: relax.Expr) -> relax.Expr:
        if expr in self._emitted:
            return self._emitted[expr]
        if isinstance(expr, relax.Call):
            arguments = [self._flat_operand(each) for each in expr.args]
            return relax.Call(expr.op, arguments, expr.attrs, expr.ty_args, expr.span)
        if isinstance(expr, relax.Tuple):
            return relax.Tuple([self._flat_operand(each) for each in expr.fields])
        if isinstance(expr, relax.TupleGetItem):
            return relax.TupleGetItem(self._flat_operand(expr.tuple_value), expr.index)
        return self._substitute(expr)

    def _substitute(self, expr: relax.Expr) -> relax.Expr:
        """Return `expr` with the renamed variables replaced; itself if it reads none."""
        if not self._renamed:
            return expr
        return tvm_ffi.structural_map(expr, (relax.Var, lambda var: self._renamed.get(var, var)))


def _nested_calls(expr: relax.Expr) -> list[relax.Expr]:
    """List the calls, and items of tuples, directly inside a new expression."""
    return [
        found
        for each in children(expr)
        for found in (_nested_calls(each) if isinstance(each, relax.Tuple) else [each])
        if isinstance(found, relax.Call | relax.TupleGetItem)
    ]


def _variables(expr: relax.Expr) -> Iterator[relax.Var]:
    """Yield the variables an expression reads."""
    if isinstance(expr, relax.Var):
        yield expr
    for each in children(expr):
        yield from _variables(each)


def _live(blocks: list[relax.BindingBlock], output: relax.Expr) -> list[relax.BindingBlock]:
    """Drop the bindings of dataflow blocks that no output depends on; calls outside of such blocks may have effects."""
    read = set(_variables(output))
    kept = []
    for block in reversed(blocks):
        pure = isinstance(block, relax.DataflowBlock)
        bindings = []
        for binding in reversed(block.bindings):
            if pure and binding.var not in read and not isinstance(binding, relax.MatchCast):
                continue
            read.update(_variables(binding.value))
            bindings.append(binding)
        if bindings:
            kept.append(type(block)(bindings[::-1]))
    return kept[::-1]
