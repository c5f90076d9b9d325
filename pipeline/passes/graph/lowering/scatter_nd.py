"""Lower ScatterND to loops over the updates, each index along an axis of its own.

    result = data
    for each place p of the updates:  result[indices[p, 0], indices[p, 1], …, rest] ∘= updates[p, rest]

TVM's own rule adds the indices up to one place in all the data: an index beyond its axis lands in another row.

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
    "min": lambda one, update: tirx.min(one, update), "max": lambda one, update: tirx.max(one, update),
}  # fmt: skip


def legalize_scatter_nd(builder: relax.BlockBuilder, call: relax.Call) -> relax.Expr:
    """Legalize `relax.scatter_nd`, whose indices are not negative; a rule for LegalizeOps."""
    return builder.call_te(_scatter, *call.args, str(call.attrs.reduction), primfunc_name_hint="scatter_nd")


def _scatter(data: te.Tensor, indices: te.Tensor, updates: te.Tensor, reduction: str) -> te.Tensor:
    shape, (*places, depth) = ([int(extent) for extent in each.shape] for each in (data, indices))
    join = _REDUCTIONS[reduction]

    def generate(ins: list, outs: list) -> Stmt:
        (given, at, new), (result,) = ins, outs
        with IRBuilder() as builder:
            with T.seq_scope():
                with ExitStack() as loops:
                    here = [loops.enter_context(T.serial(0, extent)) for extent in (shape or [1])]
                    T.buffer_store(result, given[tuple(here[: len(shape)])], here[: len(shape)])
                with ExitStack() as loops:
                    loops.enter_context(T.serial(0, 1))  # of one tuple of indices there may be no other loop
                    place = [loops.enter_context(T.serial(0, extent)) for extent in places]
                    rest = [loops.enter_context(T.serial(0, extent)) for extent in shape[depth:]]
                    target = [*(at[(*place, axis)] for axis in range(depth)), *rest]
                    T.buffer_store(result, join(result[tuple(target)], new[(*place, *rest)]), target)
            return builder.get()

    written = tvm.tirx.decl_buffer(shape, data.dtype, "written")
    return te.extern(
        [shape], [data, indices, updates], generate, out_buffers=[written], name="scatter_nd", tag="scatter_nd"
    )
