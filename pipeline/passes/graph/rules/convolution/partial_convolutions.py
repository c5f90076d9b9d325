"""`partial-convolutions`: compute a convolution over a concatenation of channels part by part.

    W * concat(x, y)  =  W₁ * x + W₂ * y          channel-wise, W cut along its inputs

Ahn et al., "Ordering chaos: memory-aware scheduling of irregularly wired neural networks for edge devices" (MLSys 2020),
section 3.3: the parts need not live at once, and no copy holds all. The sums cost arithmetic and memory of their own,
so the rule is an action of a search, never part of `simplify`.

Legal for constant weights of a float dtype that no other call reads, any rank, layout, stride, padding and dilation,
transposed or not, of one group. Between concatenation and convolution may lie operators on each channel
alone, each value with one reader; all readers of the concatenation must be such convolutions.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from ..rule import Rule

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tvm.relax import Call, Expr, Var

    from ..dataflow import Dataflow
    from .geometry import Geometry


class PartialConvolutions(Rule):
    """Cut convolutions by the parts of their operand."""

    name = "partial-convolutions"
    summary = "compute a convolution over concatenated channels as the sum of partial ones"
    clean = False

    def replacements(self, graph: Dataflow) -> Mapping[Var, Expr]:
        from .constants import ungrouped_convolutions
        from .geometry import CONVOLUTIONS, TRANSPOSED

        found: dict[Var, dict[Var, Expr]] = {}
        for var, call, geometry in ungrouped_convolutions(graph, *CONVOLUTIONS, *TRANSPOSED):
            concat, passed = _concatenation(call.args[0], geometry.channel_axis, graph)
            new = _partial(call, geometry, concat, passed, graph) if concat is not None else None
            if new is not None:
                found.setdefault(graph.variable(concat), {})[var] = new
        whole = (each for concat, each in found.items() if len(each) == graph.uses(concat))
        return {var: new for each in whole for var, new in each.items()}


def _concatenation(expr: Expr, axis: int, graph: Dataflow) -> tuple[Expr | None, list[Call]]:
    """Return the concatenation of channels before a value, and the calls in between, the first one first."""
    from ..operators import UNARY
    from .per_channel import BINARY, PLANEWISE, constant_term

    passed: list[Call] = []
    while (call := graph.call(expr, *UNARY, *PLANEWISE, *BINARY)) is not None and graph.uses(expr) == 1:
        place = 0
        if graph.operator(call) in BINARY:
            term = constant_term(call, graph)
            if term is None:
                break
            place = 1 - term[0]
        passed.insert(0, call)
        expr = call.args[place]
    call = graph.call(expr, "relax.concat")
    if call is None or int(call.attrs.axis) % len(graph.shape(call) or (0,)) != axis:
        return None, []
    return (expr, passed) if len(graph.fields(call.args[0])) > 1 else (None, [])


def _partial(call: Call, geometry: Geometry, concat: Expr, passed: list[Call], graph: Dataflow) -> Expr | None:
    import functools

    import numpy as np
    from tvm import relax

    from .per_channel import restrict_channels

    axis, weight = geometry.channel_axis, graph.constant(call.args[1])
    fields = graph.fields(graph.value(concat).args[0])
    bounds = [0]
    for field in fields:
        shape = graph.shape(field)
        if shape is None or not shape[axis]:
            return None
        bounds.append(bounds[-1] + shape[axis])
    if weight is None:
        return None
    results: list[Expr] = []
    for part, (start, stop) in zip(fields, pairwise(bounds)):
        for each in passed:
            part = restrict_channels(each, part, axis, start, stop, graph)
            if part is None:
                return None
        cut = np.take(weight, range(start, stop), geometry.kernel_layout.index("I"))
        results.append(geometry.call(part, relax.const(cut, str(cut.dtype))))
    return functools.reduce(relax.op.add, results)
