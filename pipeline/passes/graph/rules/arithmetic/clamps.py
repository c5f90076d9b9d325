"""Merge chains of clips, relus, maxima and minima with a constant: each keeps values within an interval."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..operators import is_float

if TYPE_CHECKING:
    from tvm.relax import Call, Expr

    from ..dataflow import Dataflow

_INF = float("inf")
Interval = tuple[float, float]


def merge_clamps(name: str, call: Call, graph: Dataflow) -> Expr | None:
    """Return one clip in place of two; the inner one alone if the outer one changes nothing more.

    Legal for floats; a bound that is NaN, or an interval that is empty, stays as it is.
    """
    outer = _clamp(call, graph)
    inner = _clamp(graph.value(outer[0]), graph) if outer else None
    if not outer or not inner:
        return None
    (x, (low, high)), (source, (under, over)) = outer, inner
    merged = min(max(under, low), high), min(max(over, low), high)
    if merged == (under, over):
        return x
    return _clip(source, merged, graph) if graph.uses(x) == 1 else None


def _clamp(call: Expr, graph: Dataflow) -> tuple[Expr, Interval] | None:
    """Return operand and interval of a clamp; None for any other value."""
    name = graph.operator(call)
    if not name or not is_float(graph.dtype(call)):
        return None
    if name == "relax.nn.relu":
        return call.args[0], (0.0, _INF)
    if name == "relax.nn.relu6":
        return call.args[0], (0.0, 6.0)
    if name == "relax.clip":
        low, high = (float(each.value) for each in call.args[1:])
        return (call.args[0], (low, high)) if low <= high else None
    if name in ("relax.maximum", "relax.minimum"):
        for place in (0, 1):
            bound, x = graph.uniform(call.args[1 - place]), call.args[place]
            if bound is not None and graph.same_type(x, call):
                return x, ((float(bound), _INF) if name == "relax.maximum" else (-_INF, float(bound)))
    return None


def _clip(x: Expr, interval: Interval, graph: Dataflow) -> Expr:
    low, high = interval
    if interval == (0.0, _INF):
        return graph.op.nn.relu(x)
    if high == _INF:
        return graph.op.maximum(x, graph.scalar(low, graph.dtype(x)))
    if low == -_INF:
        return graph.op.minimum(x, graph.scalar(high, graph.dtype(x)))
    return graph.op.clip(x, low, high)
