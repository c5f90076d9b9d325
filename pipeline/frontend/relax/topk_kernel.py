"""Lower TopK to plain loops, in a graph or in the body of a kept loop.

TVM's own rule calls its runtime.

Imports TVM: only imported once a graph is legalized.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import ExitStack

import tvm
from tvm import relax, te
from tvm.ir import Expr
from tvm.script.ir_builder import IRBuilder
from tvm.script.ir_builder import tirx as T
from tvm.tirx import Stmt

#: reads the element at a position
_At = Callable[[Expr], Expr]


def legalize_topk(builder: relax.BlockBuilder, call: relax.Call) -> relax.Expr:
    """Legalize `relax.topk` by `topk` below; a rule for LegalizeOps."""
    attrs = call.attrs
    both = builder.call_te(
        topk, call.args[0], int(attrs.k), int(attrs.axis), bool(attrs.largest), str(attrs.dtype),
        primfunc_name_hint="topk",
    )  # fmt: skip
    if attrs.ret_type == "both":
        return both
    return relax.TupleGetItem(builder.emit(both), 0 if attrs.ret_type == "values" else 1)


def topk(data: te.Tensor, k: int, axis: int, largest: bool, dtype: str) -> list[te.Tensor]:
    """Select the values and indices of the `k` largest (or smallest) along `axis`, best first.

    `k` < 1 selects all. Of equals the first comes first; NaN comes last. Selection in k·n comparisons without a
    workspace: each result is the best of all elements that come after the previous result.
    """
    shape = [int(extent) for extent in data.shape]
    axis %= len(shape)
    extent = shape[axis]
    k = k if k >= 1 else extent
    others = [*shape[:axis], *shape[axis + 1 :]]
    result_shape = [*shape[:axis], k, *shape[axis + 1 :]]

    order = {"largest": largest, "floats": "float" in str(data.dtype)}

    def generate(ins: list, outs: list) -> Stmt:
        (given,), (values, places) = ins, outs
        with IRBuilder() as builder:
            with ExitStack() as loops:
                loops.enter_context(T.serial(0, 1))  # of one axis there is no other loop around both below
                line = [loops.enter_context(T.serial(0, each)) for each in others]

                def index(place: Expr) -> list[Expr]:
                    return [*line[:axis], place, *line[axis:]]

                def at(place: Expr) -> Expr:
                    return given[tuple(index(place))]

                precedes = functools.partial(_precedes, at, **order)
                with T.serial(0, k) as rank:  # a loop of its own: TVM may make a buffer anew in the one loop that uses it
                    T.buffer_store(places, tvm.tirx.const(-1, dtype), index(rank))
                with T.serial(0, k) as rank:
                    here = index(rank)
                    with T.serial(0, extent) as place:
                        above, best = places[tuple(index(rank - 1))], places[tuple(here)]
                        left = T.if_then_else(rank > 0, precedes(above, place), True)
                        better = T.if_then_else(best >= 0, precedes(place, best), True)
                        with T.If(T.if_then_else(left, better, False)), T.Then():
                            T.buffer_store(places, tvm.tirx.Cast(dtype, place), here)
                    T.buffer_store(values, at(places[tuple(here)]), here)
            return builder.get()

    results = [
        tvm.tirx.decl_buffer(result_shape, kind, name) for kind, name in ((data.dtype, "values"), (dtype, "places"))
    ]
    return te.extern([result_shape] * 2, [data], generate, out_buffers=results, name="topk", tag="topk")


def _precedes(at: _At, one: Expr, other: Expr, *, largest: bool, floats: bool) -> Expr:
    """Compare positions `one` and `other` by a total order, so that every rank is found."""
    a, b = at(one), at(other)
    beats, ties = (a > b if largest else a < b), a == b
    if floats:
        # not `a != a`, which TVM takes to be false
        odd_a, odd_b = tvm.tirx.isnan(a), tvm.tirx.isnan(b)
        beats = tvm.tirx.any(beats, tvm.tirx.all(tvm.tirx.Not(odd_a), odd_b))
        ties = tvm.tirx.any(ties, tvm.tirx.all(odd_a, odd_b))
    return tvm.tirx.any(beats, tvm.tirx.all(ties, one < other))
