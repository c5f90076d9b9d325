"""Lower cumulative sums and products to loops that walk memory in order.

    for i in before:  for k in axis:  for j in after:  y[i, k, j] = y[i, k - 1, j] ∘ x[i, k, j]

TVM's own rule walks the axis for each element behind it: a column, whose elements lie a row apart.

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

_JOINS: dict[str, tuple[int, Callable[[Expr, Expr], Expr]]] = {
    "relax.cumsum": (0, lambda one, other: one + other), "relax.cumprod": (1, lambda one, other: one * other),
}  # fmt: skip
CUMULATIVE = tuple(_JOINS)
#: TVM's OpPatternKind of kernels that are fused with no other
_OPAQUE = 8


def legalize_cumulative(builder: relax.BlockBuilder, call: relax.Call) -> relax.Expr:
    """Legalize a cumulative sum or product along an axis; a rule for LegalizeOps. Leaves flattened ones to TVM."""
    attrs = call.attrs
    if attrs.axis is None:
        return call.op.get_attr("FLegalize")(builder, call)
    name, shape = call.op.name, [int(extent) for extent in call.ty.shape]
    axis, dtype = int(attrs.axis) % len(shape), str(call.ty.dtype)

    def cumulative(data: te.Tensor) -> te.Tensor:
        return _cumulative(data, name, axis, dtype, bool(attrs.exclusive))

    return builder.call_te(
        cumulative, *call.args, primfunc_name_hint=name.rpartition(".")[2], primfunc_attrs={"op_pattern": _OPAQUE}
    )


def _cumulative(data: te.Tensor, name: str, axis: int, dtype: str, exclusive: bool) -> te.Tensor:
    shape, (start, join) = [int(extent) for extent in data.shape], _JOINS[name]

    def generate(ins: list, outs: list) -> Stmt:
        (given,), (result,) = ins, outs

        def fill(extent: int, value: Callable[[list, Expr], Expr], since: int) -> None:
            """Append loops over `extent` places of the axis from `since` on."""
            with ExitStack() as loops:
                here = [loops.enter_context(T.serial(0, each)) for each in (*shape[:axis], extent, *shape[axis + 1 :])]
                place = [*here[:axis], here[axis] + since, *here[axis + 1 :]]
                before = [*here[:axis], here[axis] + since - 1, *here[axis + 1 :]]
                T.buffer_store(result, value(place, before), place)

        def first(place: list, before: list) -> Expr:
            return tirx.const(start, dtype) if exclusive else given[tuple(place)].astype(dtype)

        def following(place: list, before: list) -> Expr:
            return join(result[tuple(before)], given[tuple(before if exclusive else place)].astype(dtype))

        with IRBuilder() as ib:
            with T.seq_scope():
                fill(1, first, 0)
                if shape[axis] > 1:
                    fill(shape[axis] - 1, following, 1)
            return ib.get()

    written = tvm.tirx.decl_buffer(data.shape, dtype, "written")
    return te.extern([data.shape], [data], generate, out_buffers=[written], name="cumulative", tag="cumulative")
