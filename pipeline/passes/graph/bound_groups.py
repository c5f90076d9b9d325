"""Split fusion groups with too large an inlined expression.

FuseOps counts the operators of a group. A kernel inlines them: a value that is read twice is computed twice, and
thirty operators can be a tree of 2**30 (see `expansion_size.py`). TVM's simplifier and LLVM walk that tree.

    x ─► swish ─► swish ─► … ─► swish        one group of 2**n operations becomes a chain of kernels, each in place
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

import tvm
from tvm import relax
from tvm.ir import GlobalVar, IRModule, Op, Var

from .divide_groups import Computations, parts
from .expansion_size import Expansion, expansion
from .rules.dataflow import bindings_of

#: operations of the expanded expressions of a divided kernel; the largest of the models in params.yaml has 47
MOST_OPERATIONS = 512
#: operations of all kernels of a module together that no group is divided for: TVM takes a second for them
ALLOWANCE = 16384


def bounded_groups(module: IRModule) -> IRModule:
    """Divide groups, the largest first, until ALLOWANCE covers the module; `module` is grouped by FuseOps.

    Parts have at most MOST_OPERATIONS each.
    """
    known: dict[GlobalVar, Expansion] = {}
    every = ((var, _group(module, function, known)) for var, function in module.functions.items())
    groups = {var: group for var, group in every if group is not None}
    sizes = {var: group.total for var, group in groups.items()}
    total = sum(sizes.values())
    divided: dict[GlobalVar, tuple[_Group, list[list[int]]]] = {}
    for var in sorted(sizes, key=lambda each: (-sizes[each], each.name_hint)):
        if total <= ALLOWANCE or sizes[var] <= MOST_OPERATIONS:
            break
        group = groups[var]
        if len(found := parts(group.computations, group.size, MOST_OPERATIONS)) > 1:
            divided[var] = group, found
            total += MOST_OPERATIONS * len(found) - sizes[var]
    if not divided:
        return module
    mutator = _Divider(module, divided)
    main = module.get_global_var("main")
    mutator.builder_.update_func(main, mutator.visit_expr(module["main"]))
    divided_module = mutator.builder_.get()
    for var in divided:
        del divided_module[var]
    return divided_module


class _Group:
    """Hold a group's function: single-result kernel calls, in order."""

    def __init__(self, function: relax.Function, bindings: Sequence[relax.VarBinding], expansions: Sequence[Expansion]):
        self.function, self.bindings, self.expansions = function, bindings, expansions
        self.number = {binding.var: number for number, binding in enumerate(bindings)}
        self.result = self.number[function.body.body]
        self.reads = [
            tuple(self.number.get(each) if isinstance(each, Var) else None for each in binding.value.args[1].fields)
            for binding in bindings
        ]
        self.computations = Computations(
            tuple(tuple(each for each in reads if each is not None) for reads in self.reads),
            tuple(_elements(binding.var) for binding in bindings),
            frozenset({self.result}),
        )

    @property
    def total(self) -> int:
        """Count the operations of the group as one kernel."""
        return self.size(range(len(self.bindings)), {self.result})

    def size(self, values: Sequence[int], kept: Collection[int]) -> int:
        """Count the operations of kernels computing `values`; sums and values in `kept` are computed once."""
        sizes: dict[int | None, int] = {}
        total = 0
        for value in values:
            (size,), sums = self.expansions[value].sizes([sizes.get(each, 1) for each in self.reads[value]])
            total += sums + (size if value in kept else 0)
            sizes[value] = 1 if value in kept else size
        return total


def _group(module: IRModule, function: object, known: dict[GlobalVar, Expansion]) -> _Group | None:
    """Return the group of a function, None unless it is fused of single-result kernel calls."""
    if not isinstance(function, relax.Function) or not function.attrs or "Primitive" not in function.attrs:
        return None
    bindings = list(bindings_of(function))
    if not all(map(is_plain_call, bindings)) or function.body.body not in [binding.var for binding in bindings]:
        return None
    for binding in bindings:
        callee = binding.value.args[0]
        if callee not in known:
            known[callee] = expansion(module[callee], 1)
    return _Group(function, bindings, [known[binding.value.args[0]] for binding in bindings])


def is_plain_call(binding: relax.Binding) -> bool:
    """Return whether a binding calls a kernel on a tuple of tensors, with one tensor as its result."""
    call = binding.value
    if not isinstance(call, relax.Call) or call.op != Op.get("relax.call_tir") or len(call.args) != 2:
        return False
    if not isinstance(call.args[1], relax.Tuple):
        return False
    return isinstance(binding.var.ty, relax.TensorType)


def _elements(var: Var) -> int:
    return math.prod(int(extent) for extent in var.ty.shape)


@relax.expr_functor.mutator
class _Divider(relax.PyExprMutator):
    """Replace the call of each divided group by calls of its parts."""

    def __init__(self, module: IRModule, divided: dict[GlobalVar, tuple[_Group, list[list[int]]]]):
        super().__init__(module)
        self.divided = divided
        self.functions: dict[tuple[GlobalVar, int], tuple[GlobalVar, list[relax.Expr]]] = {}

    def visit_call_(self, call: relax.Call) -> relax.Expr:
        if call.op not in self.divided:
            return call
        group, found = self.divided[call.op]
        known: dict[Var, relax.Expr] = dict(zip(group.function.params, call.args))
        for values in found[:-1]:
            var = group.bindings[values[-1]].var
            known[var] = self.builder_.emit(self._call(call.op, group, values, known), var.name)
        return self._call(call.op, group, found[-1], known)

    def _call(self, name: GlobalVar, group: _Group, values: list[int], known: dict[Var, relax.Expr]) -> relax.Call:
        """Build the call of a part: its only kernel, or a new function of several; operands come from `known`."""
        if len(values) == 1:
            return _replace_operands(group.bindings[values[0]].value, known)
        if (name, values[-1]) not in self.functions:
            function, operands = group_function([group.bindings[value] for value in values])
            self.functions[name, values[-1]] = self.builder_.add_func(function, f"{name.name_hint}_part"), operands
        callee, operands = self.functions[name, values[-1]]
        return relax.Call(callee, [known.get(each, each) for each in operands])


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
