"""Start the largest and the least of floats from infinity: TVM's rules start from the last finite number.

A row of nothing but -∞, such as a mask that hides every key, has the maximum -∞.

Imports TVM: only imported once a graph is legalized.
"""

from __future__ import annotations

from tvm import relax

from ....tir.extremes import from_infinity

#: operators this lowers
EXTREMES = ("relax.max", "relax.min")


def legalize_extreme(builder: relax.BlockBuilder, call: relax.Call) -> relax.Expr:
    """Legalize by TVM's own rule, then replace the start; a rule for LegalizeOps."""
    made = call.op.get_attr("FLegalize")(builder, call)
    kernel = builder.get()[made.args[0]]
    builder.update_func(made.args[0], from_infinity(kernel))
    return made
