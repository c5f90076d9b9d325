"""Lower a Gather to reads at its indices. TVM's rule is the same, and prints a warning for each.

Imports TVM: only imported once a graph is legalized.
"""

from __future__ import annotations

from tvm import relax

from ....frontend.relax.operators.bounded_gather import take


def legalize_take(builder: relax.BlockBuilder, call: relax.Call) -> relax.Expr:
    """Legalize `relax.take`; a rule for LegalizeOps. Indices out of range are for `codegen.checks`."""
    axis, rank = call.attrs.axis, len(call.args[0].ty.shape)
    if axis is None or str(call.attrs.mode) != "fast":
        return call.op.get_attr("FLegalize")(builder, call)
    return builder.call_te(take, *call.args, int(axis) % rank, primfunc_name_hint="take")
