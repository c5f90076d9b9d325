"""Leave fusion groups apart whose inlined expression is too large.

FuseOps counts the operators of a group. A kernel inlines them: a value that is read twice is computed twice, and
thirty operators can be a tree of 2**30 (see `expansion_size.py`). TVM's simplifier and LLVM walk that tree.

    x ─► swish ─► swish ─► … ─► swish        one group of 2**n operations stays a chain of kernels, each in place

`fuse-operators{depth=4}` fuses them a few at a time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import tvm
from tvm import relax
from tvm.ir import GlobalVar, IRModule, Op, Var

from .expansion_size import expansion
from .rules.dataflow import bindings_of

#: operations of the expanded expressions of a group left apart; the largest of the models in params.yaml has 47
MOST_OPERATIONS = 512
#: operations of all kernels of a module together that no group is left apart for: TVM takes a second for them
ALLOWANCE = 16384


def bounded_groups(module: IRModule) -> IRModule:
    """Leave the kernels of groups apart, the largest first, until ALLOWANCE covers the module, grouped by FuseOps."""
    counted = ((var, _count_operations(module, function)) for var, function in module.functions.items())
    sizes = {var: size for var, size in counted if size > 0}
    total = sum(sizes.values())
    divided: dict[GlobalVar, relax.Function] = {}
    for var in sorted(sizes, key=lambda each: (-sizes[each], each.name_hint)):
        if total <= ALLOWANCE or sizes[var] <= MOST_OPERATIONS:
            break
        divided[var] = module[var]
        total -= sizes[var]
    if not divided:
        return module
    mutator = _Divider(module, divided)
    main = module.get_global_var("main")
    mutator.builder_.update_func(main, mutator.visit_expr(module["main"]))
    divided_module = mutator.builder_.get()
    for var in divided:
        del divided_module[var]
    return divided_module


def _count_operations(module: IRModule, function: object) -> int:
    """Count the operations of a group as one kernel; 0 unless it is fused of single-result kernel calls."""
    if not isinstance(function, relax.Function) or not function.attrs or "Primitive" not in function.attrs:
        return 0
    bindings = list(bindings_of(function))
    if not all(map(is_plain_call, bindings)) or bindings[-1].var != function.body.body:
        return 0
    sizes: dict[relax.Expr, int] = {}
    total = 0
    for binding in bindings:
        callee, operands = binding.value.args
        size, sums = expansion(module[callee]).size([sizes.get(each, 1) for each in operands.fields])
        sizes[binding.var], total = size, total + sums
    return total + sizes[function.body.body]


def is_plain_call(binding: relax.Binding) -> bool:
    """Return whether a binding calls a kernel on a tuple of tensors, with one tensor as its result."""
    call = binding.value
    if not isinstance(call, relax.Call) or call.op != Op.get("relax.call_tir") or len(call.args) != 2:
        return False
    if not isinstance(call.args[1], relax.Tuple):
        return False
    return isinstance(binding.var.ty, relax.TensorType)


@relax.expr_functor.mutator
class _Divider(relax.PyExprMutator):
    """Replace the call of each divided group by the calls inside it."""

    def __init__(self, module: IRModule, divided: Mapping[GlobalVar, relax.Function]):
        super().__init__(module)
        self.divided = divided

    def visit_call_(self, call: relax.Call) -> relax.Expr:
        if call.op not in self.divided:
            return call
        function = self.divided[call.op]
        known: dict[relax.Expr, relax.Expr] = dict(zip(function.params, call.args))
        *inner, last = bindings_of(function)
        for binding in inner:
            known[binding.var] = self.builder_.emit(_replace_operands(binding.value, known), binding.var.name)
        return _replace_operands(last.value, known)


def group_function(bindings: Sequence[relax.VarBinding]) -> tuple[relax.Function, list[relax.Expr]]:
    """Build a function of `bindings`, the last one its result, for FuseTIR; return it with its operands."""
    known: dict[relax.Expr, relax.Expr] = {}
    operands: list[relax.Expr] = []
    copies: list[relax.VarBinding] = []
    for binding in bindings:
        for each in binding.value.args[1].fields:
            if each not in known:
                known[each] = Var(each.name if isinstance(each, Var) else "weight", each.ty)
                operands.append(each)
        kind = Var if binding is bindings[-1] else relax.DataflowVar
        known[binding.var] = kind(binding.var.name, binding.var.ty)
        copies.append(relax.VarBinding(known[binding.var], _replace_operands(binding.value, known)))
    result = copies[-1].var
    body = relax.SeqExpr([relax.DataflowBlock(copies)], result)
    attributes = tvm.ir.make_node("ir.DictAttrs", Primitive=True)
    return relax.Function([known[each] for each in operands], body, result.ty, True, attributes), operands


def _replace_operands(call: relax.Call, known: dict[relax.Expr, relax.Expr]) -> relax.Call:
    operands = relax.Tuple([known.get(each, each) for each in call.args[1].fields])
    return relax.Call(call.op, [call.args[0], operands], call.attrs, call.ty_args)
