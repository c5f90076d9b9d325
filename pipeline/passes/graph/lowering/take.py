"""Lower a Gather to reads at its indices. TVM's rule is the same, and prints a warning for each.

Imports TVM: only imported once a graph is legalized.
"""

from __future__ import annotations

from tvm import relax, te
from tvm.ir import Expr


def legalize_take(builder: relax.BlockBuilder, call: relax.Call) -> relax.Expr:
    """Legalize `relax.take`; a rule for LegalizeOps. Indices out of range are for `codegen.checks`."""
    axis, rank = call.attrs.axis, len(call.args[0].ty.shape)
    if axis is None or str(call.attrs.mode) != "fast":
        return call.op.get_attr("FLegalize")(builder, call)
    return builder.call_te(_take, *call.args, int(axis) % rank, primfunc_name_hint="take")


def _take(data: te.Tensor, indices: te.Tensor, axis: int) -> te.Tensor:
    rank = len(indices.shape)

    def element(*places: Expr) -> Expr:
        return data[(*places[:axis], indices[places[axis : axis + rank]], *places[axis + rank :])]

    shape = (*data.shape[:axis], *indices.shape, *data.shape[axis + 1 :])
    return te.compute(shape, element, name="T_take", tag="injective")
