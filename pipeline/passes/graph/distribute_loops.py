"""`distribute-loops`: run the products of loops that no state changes for many trips at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..base import ModulePass

if TYPE_CHECKING:
    from tvm import relax
    from tvm.ir import GlobalVar, IRModule

    from ..base import Pass


@dataclass(frozen=True)
class DistributeLoops(ModulePass):
    """Distribute each loop over `trips` trips, or the largest number below that divides its trips; 0: over all.

        for t: h = tanh(x[t] · W + h · R)  ─►  s = x · W;  for t: h = tanh(s[t] + h · R)

    W is read once for so many trips, whose sums take memory. See kernels.rewrite.distribute_loop.
    """

    name = "distribute-loops"
    summary = "compute what no state changes in a recurrent layer for many steps at once, which reads its weights once"

    trips: int = 0

    @classmethod
    def instances(cls) -> Iterable[Pass]:
        """Return none: it only trades memory for time, so the search tries it on its winner; see `refine/alternatives.py`."""
        return ()

    def apply(self, module: IRModule) -> IRModule:
        from tvm import relax
        from tvm.ir import IRModule
        from tvm.tirx import PrimFunc

        from ...frontend.relax.loop_kernel import ITERATIONS
        from ...kernels.rewrite.distribute_loop import distribute_loop
        from .fusion_barriers import is_kernel_call
        from .rules.dataflow import bindings_of
        from .rules.replace_values import replace_values

        made = {
            var: found
            for var, kernel in module.functions.items()
            if isinstance(kernel, PrimFunc) and kernel.attrs and ITERATIONS in kernel.attrs
            if (found := distribute_loop(kernel, self.trips)) is not None
        }
        if not made:
            return module
        # the builder gives a kernel of another type a variable of its own
        builder = relax.BlockBuilder(
            IRModule({var: each for var, each in module.functions.items() if var not in made}, attrs=module.attrs)
        )
        callees = {var: builder.add_func(found.kernel, var.name_hint) for var, found in made.items()}
        replaced = {
            binding.var: _call(binding.value, callees[binding.value.args[0]], made[binding.value.args[0]].shapes)
            for binding in bindings_of(module["main"])
            if is_kernel_call(binding.value) and binding.value.args[0] in made
        }
        return replace_values(builder.get(), replaced)


def _call(call: relax.Call, callee: GlobalVar, shapes: Mapping[int, tuple[int, ...]]) -> relax.Expr:
    """Call a distributed kernel in place of `call`; `shapes` are those of its parameters that differ, by number."""
    from tvm import relax

    operands = [
        relax.op.reshape(each, shapes[number]) if number in shapes else each
        for number, each in enumerate(call.args[1].fields)
    ]
    several = isinstance(call.ty, relax.TupleType)
    old = list(call.ty.fields) if several else [call.ty]
    new = [
        relax.TensorType(shapes.get(number, [*each.shape]), each.dtype)
        for number, each in enumerate(old, len(operands))
    ]
    made = relax.call_tir(callee, relax.Tuple(operands), new)
    parts = [relax.TupleGetItem(made, number) for number in range(len(new))] if several else [made]
    results = [
        part if number not in shapes else relax.op.reshape(part, [*each.shape])
        for number, (part, each) in enumerate(zip(parts, old), len(operands))
    ]
    return relax.Tuple(results) if several else results[0]
