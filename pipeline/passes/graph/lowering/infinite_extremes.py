"""Start the largest and the least of floats from infinity: TVM's rules start from the last finite number.

A row of nothing but -∞, such as a mask that hides every key, has the maximum -∞; so has a window, with padding or without.

Imports TVM: only imported once a graph is legalized.
"""

from __future__ import annotations

from tvm import relax

from ....tir.extremes import from_infinity, pad_with_infinity

#: operators this lowers
EXTREMES = ("relax.max", "relax.min")


def legalize_extreme(builder: relax.BlockBuilder, call: relax.Call) -> relax.Expr:
    """Legalize by TVM's own rule, then replace the start; a rule for LegalizeOps."""
    return start_from_infinity(builder, call.op.get_attr("FLegalize")(builder, call))


def start_from_infinity(builder: relax.BlockBuilder, made: relax.Call) -> relax.Call:
    """Replace the start in the kernel that was made for a call; return the call."""
    builder.update_func(made.args[0], from_infinity(builder.get()[made.args[0]]))
    return made


def legalize_max_pool(builder: relax.BlockBuilder, call: relax.Call) -> relax.Expr:
    """Legalize by TVM's own rule, then replace start and padding; a rule for LegalizeOps."""
    made = call.op.get_attr("FLegalize")(builder, call)
    builder.update_func(made.args[0], pad_with_infinity(builder.get()[made.args[0]]))
    return made
