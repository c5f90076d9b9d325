"""Lower TopK to plain loops, in a graph or in the body of a kept loop.

TVM's own rule calls its runtime.

Imports TVM: only imported once a graph is legalized.
"""

from __future__ import annotations

import functools
from contextlib import ExitStack

import tvm
from tvm import relax, te
from tvm.ir import Expr
from tvm.script.ir_builder import IRBuilder
from tvm.script.ir_builder import tirx as T
from tvm.tirx import Stmt


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

    `k` < 1 selects all. Of equals the first comes first; NaN is larger than all, as in ONNX Runtime. Insertion without a workspace: one comparison for
    most elements, k more for one among the best so far.
    """
    shape = [int(extent) for extent in data.shape]
    axis %= len(shape)
    extent = shape[axis]
    k = k if k >= 1 else extent
    others = [*shape[:axis], *shape[axis + 1 :]]
    result_shape = [*shape[:axis], k, *shape[axis + 1 :]]
    beats = functools.partial(_beats, largest=largest, floats="float" in str(data.dtype))

    def generate(ins: list, outs: list) -> Stmt:
        (given,), (values, places) = ins, outs
        with IRBuilder() as builder:
            with ExitStack() as loops:
                loops.enter_context(T.serial(0, 1))  # of one axis there is no other loop around
                line = [loops.enter_context(T.serial(0, each)) for each in others]

                def index(place: Expr) -> list[Expr]:
                    return [*line[:axis], place, *line[axis:]]

                with T.serial(0, extent) as place:
                    found = given[tuple(index(place))]

                    def precedes(rank: Expr, found: Expr = found) -> Expr:
                        return beats(found, values[tuple(index(rank))])

                    # the first k are inserted wherever they belong, others if they precede the last
                    among = T.if_then_else(place < k, True, precedes(T.int64(k - 1)))
                    with T.If(among), T.Then(), T.serial(0, k) as step:
                        rank = k - 1 - step
                        shifted = T.if_then_else(rank > 0, precedes(rank - 1), False)
                        here = T.if_then_else(rank < place, precedes(rank), rank <= place)
                        with T.If(here), T.Then():
                            T.buffer_store(
                                values, T.if_then_else(shifted, values[tuple(index(rank - 1))], found), index(rank)
                            )
                            T.buffer_store(
                                places,
                                T.if_then_else(shifted, places[tuple(index(rank - 1))], tvm.tirx.Cast(dtype, place)),
                                index(rank),
                            )
            return builder.get()

    results = [
        tvm.tirx.decl_buffer(result_shape, kind, name) for kind, name in ((data.dtype, "values"), (dtype, "places"))
    ]
    return te.extern([result_shape] * 2, [data], generate, out_buffers=results, name="topk", tag="topk")


def _beats(one: Expr, other: Expr, *, largest: bool, floats: bool) -> Expr:
    """Return whether `one`, which comes later in the data, precedes `other`."""
    better = one > other if largest else one < other
    if not floats:
        return better
    # not `a != a`, which TVM takes to be false
    larger, smaller = (one, other) if largest else (other, one)
    return tvm.tirx.any(better, tvm.tirx.all(tvm.tirx.isnan(larger), tvm.tirx.Not(tvm.tirx.isnan(smaller))))
