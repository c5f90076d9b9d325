"""Keep single calls out of fusion, and list the calls of each fusion group.

A fused kernel keeps the operands of all its parts alive until it runs: a slice of a large tensor fused into a late
consumer holds the large tensor. Calls are numbered among the kernel calls of `main`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from tvm import relax
from tvm.ir import GlobalVar, IRModule, Op
from tvm.tirx import PrimFunc

from ...errors import SequenceError
from .rules.dataflow import bindings_of
from .rules.replace_values import replace_values

#: TVM's OpPatternKind of kernels that are never fused
OPAQUE = 8


def insert_fusion_barriers(module: IRModule, numbers: frozenset[int]) -> IRModule:
    """Make a kernel of its own for each of these calls, opaque to FuseOps.

    `module` is annotated with op patterns. Raises SequenceError for a number beyond the calls.
    """
    total = sum(1 for _ in kernel_calls(module["main"]))
    beyond = [number for number in numbers if number >= total]
    if beyond:
        raise SequenceError(f"There is no kernel call {min(beyond)}: the graph has {total}.", "Search again.")
    return _rename(module, lambda number: f"_apart{number}" if number in numbers else None, opaque=True)


def groups(module: IRModule, group: Callable[[IRModule], IRModule]) -> list[tuple[int, ...]]:
    """List the original calls, by number, in each kernel call left by `group`."""
    grouped = group(_rename(module, lambda number: f"_call{number}", opaque=False))
    found = []
    for _, call in _calls(grouped["main"]):
        callee = call.args[0] if is_kernel_call(call) else call.op
        inner = grouped[callee]
        members = [callee] if isinstance(inner, PrimFunc) else [each.args[0] for each in kernel_calls(inner)]
        found.append(tuple(int(re.findall(r"_call(\d+)", member.name_hint)[-1]) for member in members))
    return found


def kernel_calls(function: relax.Function) -> Iterator[relax.Call]:
    """Yield the `call_tir` of a function's bindings, in order."""
    return (call for _, call in _calls(function) if is_kernel_call(call))


def _calls(function: relax.Function) -> Iterator[tuple[relax.Var, relax.Call]]:
    """Yield calls of kernels and of functions, each with its variable."""
    for binding in bindings_of(function):
        call = binding.value
        if isinstance(call, relax.Call) and (is_kernel_call(call) or isinstance(call.op, GlobalVar)):
            yield binding.var, call


def is_kernel_call(call: relax.Expr) -> bool:
    return isinstance(call, relax.Call) and call.op == Op.get("relax.call_tir")


def _rename(module: IRModule, suffix: Callable[[int], str | None], *, opaque: bool) -> IRModule:
    """Redirect each call with a suffix to a copy of its kernel of that name."""
    builder, replaced = relax.BlockBuilder(module), {}
    called = ((var, call) for var, call in _calls(module["main"]) if is_kernel_call(call))
    for number, (var, call) in enumerate(called):
        name = suffix(number)
        if name is None:
            continue
        callee = call.args[0]
        # without an attribute of its own, a copy would be merged with its original
        mark = {"op_pattern": OPAQUE} if opaque else {"passfit.call": number}
        kernel = module[callee].with_attrs(mark)
        copy = builder.add_func(kernel.without_attr("global_symbol"), f"{callee.name_hint}{name}")
        replaced[var] = relax.Call(call.op, [copy, *call.args[1:]], call.attrs, call.ty_args)
    return replace_values(builder.get(), replaced)
