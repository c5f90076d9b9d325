"""Keep single calls out of fusion, and say which calls fusion would put together.

A fused kernel keeps all that any of its parts reads alive until it runs: a slice of a large tensor that is fused into
a late consumer holds the large tensor. Calls are named by their number among the kernel calls of `main`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from tvm import relax
from tvm.ir import GlobalVar, IRModule, Op
from tvm.tirx import PrimFunc

from ...errors import SequenceError

#: TVM's OpPatternKind of what is fused with nothing
OPAQUE = 8


def insert_fusion_barriers(module: IRModule, numbers: frozenset[int]) -> IRModule:
    """`module`, annotated with op patterns, in which these calls have a kernel of their own that is opaque to FuseOps.

    Raises SequenceError for a number there is no call of.
    """
    total = sum(1 for _ in kernel_calls(module["main"]))
    beyond = [number for number in numbers if number >= total]
    if beyond:
        raise SequenceError(f"There is no kernel call {min(beyond)}: the graph has {total}.", "Search again.")
    return _renamed(module, lambda number: f"_apart{number}" if number in numbers else None, opaque=True)


def groups(module: IRModule, group: Callable[[IRModule], IRModule]) -> list[tuple[int, ...]]:
    """For each kernel call `group` leaves in `main`, in order, the numbers of the calls that it is made of."""
    grouped = group(_renamed(module, lambda number: f"_call{number}", opaque=False))
    found = []
    for _, call in _calls(grouped["main"]):
        callee = call.args[0] if _is_call_tir(call) else call.op
        inner = grouped[callee]
        members = [callee] if isinstance(inner, PrimFunc) else [each.args[0] for each in kernel_calls(inner)]
        found.append(tuple(int(re.findall(r"_call(\d+)", member.name_hint)[-1]) for member in members))
    return found


def kernel_calls(function: relax.Function) -> Iterator[relax.Call]:
    """The `call_tir` of a function's bindings, in order."""
    return (call for _, call in _calls(function) if _is_call_tir(call))


def _calls(function: relax.Function) -> Iterator[tuple[relax.Var, relax.Call]]:
    """Calls of kernels and of functions."""
    for block in function.body.blocks:
        for binding in block.bindings:
            call = binding.value
            if isinstance(call, relax.Call) and (_is_call_tir(call) or isinstance(call.op, GlobalVar)):
                yield binding.var, call


def _is_call_tir(call: relax.Call) -> bool:
    return call.op == Op.get("relax.call_tir")


def _renamed(module: IRModule, suffix: Callable[[int], str | None], *, opaque: bool) -> IRModule:
    """`module`, in which each call for which there is a suffix calls a copy of its kernel of that name."""
    mutator = _Renamer(module, suffix, opaque)
    main = module.get_global_var("main")
    mutator.builder_.update_func(main, mutator.visit_expr(module["main"]))
    return mutator.builder_.get()


@relax.expr_functor.mutator
class _Renamer(relax.PyExprMutator):
    def __init__(self, module: IRModule, suffix: Callable[[int], str | None], opaque: bool):
        super().__init__(module)
        self.module, self.suffix, self.opaque, self.number = module, suffix, opaque, 0

    def visit_call_(self, call: relax.Call) -> relax.Expr:
        if not _is_call_tir(call):
            return call
        number, self.number = self.number, self.number + 1
        suffix = self.suffix(number)
        if suffix is None:
            return call
        callee = call.args[0]
        # without an attribute of its own, a copy would be taken for the kernel it is a copy of
        mark = {"op_pattern": OPAQUE} if self.opaque else {"passfit.call": number}
        kernel = self.module[callee].with_attrs(mark)
        copy = self.builder_.add_func(kernel.without_attr("global_symbol"), f"{callee.name_hint}{suffix}")
        return relax.Call(call.op, [copy, *call.args[1:]], call.attrs, call.ty_args)
