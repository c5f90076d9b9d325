"""Lower ScatterElements to loops over the updates, which may be fewer than the data along every axis.

    result = data
    for each place p of the updates:  result[p, but indices[p] along the axis] ∘= updates[p]

TVM's own rule counts places of the data in the shape of the updates: right only where both agree except along the axis.

Imports TVM: only imported once a graph is legalized.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

import tvm
from tvm import relax, te, tirx
from tvm.ir import Expr
from tvm.script.ir_builder import IRBuilder
from tvm.script.ir_builder import tirx as T
from tvm.tirx import Stmt

#: how an element joins its update
_REDUCTIONS: dict[str, Callable[[Expr, Expr], Expr]] = {
    "update": lambda _, update: update, "add": lambda one, update: one + update, "mul": lambda one, update: one * update,
    "min": lambda one, update: tirx.min(update, one), "max": lambda one, update: tirx.max(update, one),
}  # fmt: skip


def legalize_scatter_elements(builder: relax.BlockBuilder, call: relax.Call) -> relax.Expr:
    """Legalize `relax.scatter_elements`; a rule for LegalizeOps."""
    return builder.call_te(
        _scatter, *call.args, int(call.attrs.axis), str(call.attrs.reduction), primfunc_name_hint="scatter_elements"
    )


def _scatter(data: te.Tensor, indices: te.Tensor, updates: te.Tensor, axis: int, reduction: str) -> te.Tensor:
    shape, places = ([int(extent) for extent in each.shape] for each in (data, indices))
    axis %= len(shape)
    join = _REDUCTIONS[reduction]

    def generate(ins: list, outs: list) -> Stmt:
        (given, at, new), (result,) = ins, outs
        with IRBuilder() as builder:
            with T.seq_scope():
                with ExitStack() as loops:
                    here = [loops.enter_context(T.serial(0, extent)) for extent in shape]
                    T.buffer_store(result, given[tuple(here)], here)
                with ExitStack() as loops:
                    here = [loops.enter_context(T.serial(0, extent)) for extent in places]
                    index = at[tuple(here)]
                    wrapped = index + tirx.Cast(index.ty.dtype, index < 0) * tirx.const(shape[axis], index.ty.dtype)
                    target = [*here[:axis], wrapped, *here[axis + 1 :]]
                    T.buffer_store(result, join(result[tuple(target)], new[tuple(here)]), target)
            return builder.get()

    written = tvm.tirx.decl_buffer(shape, data.dtype, "written")
    return te.extern(
        [shape],
        [data, indices, updates],
        generate,
        out_buffers=[written],
        name="scatter_elements",
        tag="scatter_elements",
    )
