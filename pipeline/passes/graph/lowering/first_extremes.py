"""Lower ArgMax and ArgMin to two reductions: the extreme, then the first index of an equal element.

    m[j]      = max over k of x[k, j]
    index[j]  = min over k of (k if x[k, j] = m[j], else the last index)

TVM's own rule updates a pair by conditions: neither vectors nor splits by rows fit it. NaN is not an extreme, unless it is the
first of its row: nothing compares with it, in ONNX Runtime as here.

Imports TVM: only imported once a graph is legalized.
"""

from __future__ import annotations

import tvm
from tvm import relax, te
from tvm.ir import Expr

from .infinite_extremes import start_from_infinity

#: operators this lowers, and their reductions
_EXTREMES = {"argmax": te.max, "argmin": te.min}
FIRST_EXTREMES = tuple(f"relax.{name}" for name in _EXTREMES)


def legalize_first_extreme(builder: relax.BlockBuilder, call: relax.Call) -> relax.Expr:
    """Legalize by `_first`, or over all axes by TVM's own rule; a rule for LegalizeOps."""
    if call.attrs.axis is None:
        return call.op.get_attr("FLegalize")(builder, call)
    name = call.op.name.removeprefix("relax.")
    made = builder.call_te(
        _first, call.args[0], int(call.attrs.axis), bool(call.attrs.keepdims), name, primfunc_name_hint=name
    )
    return start_from_infinity(builder, made)


def _first(data: te.Tensor, axis: int, keepdims: bool, name: str) -> te.Tensor:
    """Return the int64 index of the first extreme of `data` along `axis`."""
    axis %= len(data.shape)
    extent = data.shape[axis]
    shape = [*data.shape[:axis], *([1] if keepdims else []), *data.shape[axis + 1 :]]
    others = [*data.shape[:axis], *data.shape[axis + 1 :]]

    def at(line: tuple[Expr, ...], place: Expr) -> Expr:
        return data(*line[:axis], place, *line[axis:])

    over = te.reduce_axis((0, extent), "k")
    extreme = te.compute(others, lambda *line: _EXTREMES[name](at(line, over), over), "extreme")
    again = te.reduce_axis((0, extent), "l")
    last = tvm.tirx.const(int(extent) - 1, "int32")

    def equal(*line: Expr) -> Expr:
        found = tvm.tirx.Select(at(line, again) == extreme(*line), tvm.tirx.Cast("int32", again.var), last)
        return te.min(found, again)

    first = te.compute(others, equal, "first")
    if "float" in str(data.dtype):
        earliest, start = first, tvm.tirx.const(0, "int32")
        first = te.compute(
            others,
            lambda *line: earliest(*line) * tvm.tirx.Cast("int32", tvm.tirx.Not(tvm.tirx.isnan(at(line, start)))),
            "place",
        )  # fmt: skip
    return te.compute(shape, lambda *line: tvm.tirx.Cast("int64", first(*line[:axis], *line[axis + keepdims :])), name)
