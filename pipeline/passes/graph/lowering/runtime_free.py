"""Replace kernels that call TVM's runtime: serial loops, and TopK as plain loops.

Imports TVM: only imported once a graph is legalized.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import tvm
from tvm import relax, te
from tvm.ir import IRModule
from tvm.s_tir import SBlock, SBlockRealize
from tvm.script.ir_builder import IRBuilder
from tvm.script.ir_builder import tirx as T
from tvm.tirx import AttrStmt, For, IfThenElse, PrimFunc, SeqStmt, Stmt

#: reads the element at a position
_At = Callable[[tvm.ir.Expr], tvm.ir.Expr]
_SERIAL, _PARALLEL = 0, 1


def serial_loops(module: IRModule) -> IRModule:
    """Make the parallel loops of all kernels serial: a device has no thread pool."""
    changed = {}
    for var, function in module.functions.items():
        if isinstance(function, PrimFunc):
            body = _serial(function.body)
            if not body.same_as(function.body):
                changed[var] = function.with_body(body, function.span)
    result = IRModule(module.functions, attrs=module.attrs)
    for var, function in changed.items():
        result.update_func(var, function)
    return result


def _serial(stmt: Stmt) -> Stmt:
    """Make parallel loops serial; return the same object if nothing changes.

    Also drops `pragma_scope`, which only draws warnings from LLVM.
    """
    if isinstance(stmt, For):
        body = _serial(stmt.body)
        if body.same_as(stmt.body) and int(stmt.kind) != _PARALLEL:
            return stmt
        kind = _SERIAL if int(stmt.kind) == _PARALLEL else stmt.kind
        return For(stmt.loop_var, stmt.min, stmt.extent, kind, body, stmt.thread_binding, stmt.annotations, stmt.step)
    if isinstance(stmt, SeqStmt):
        parts = [_serial(part) for part in stmt.seq]
        return stmt if all(new.same_as(old) for new, old in zip(parts, stmt.seq)) else SeqStmt(parts)
    if isinstance(stmt, AttrStmt):
        body = _serial(stmt.body)
        if stmt.attr_key == "pragma_scope":
            return body
        return stmt if body.same_as(stmt.body) else AttrStmt(stmt.node, stmt.attr_key, stmt.value, body)
    if isinstance(stmt, IfThenElse):
        then, other = _serial(stmt.then_case), stmt.else_case and _serial(stmt.else_case)
        same = then.same_as(stmt.then_case) and (other is None or other.same_as(stmt.else_case))
        return stmt if same else IfThenElse(stmt.condition, then, other)
    if isinstance(stmt, SBlockRealize):
        block = stmt.block
        body = _serial(block.body)
        if body.same_as(block.body):
            return stmt
        inner = SBlock(
            block.iter_vars, block.reads, block.writes, block.name_hint, body, block.init,
            block.alloc_buffers, block.match_buffers, block.annotations,
        )  # fmt: skip
        return SBlockRealize(stmt.iter_values, stmt.predicate, inner)
    return stmt


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
    before, after = math.prod(shape[:axis]), math.prod(shape[axis + 1 :])
    result_shape = [*shape[:axis], k, *shape[axis + 1 :]]

    order = {"largest": largest, "floats": "float" in str(data.dtype)}

    def generate(ins: list, outs: list) -> Stmt:
        with IRBuilder() as builder:
            given, values, places = (T.buffer_proxy(buffer) for buffer in (*ins, *outs))
            with T.serial(0, before * after) as line:
                start, column = line // after, line % after

                def at(place: tvm.ir.Expr) -> tvm.ir.Expr:
                    return given[(start * extent + place) * after + column]

                precedes = functools.partial(_precedes, at, **order)
                with T.serial(0, k) as rank:
                    here = (start * k + rank) * after + column
                    places[here] = tvm.tirx.const(-1, dtype)
                    with T.serial(0, extent) as place:
                        above, best = places[here - after], places[here]
                        left = T.if_then_else(rank > 0, precedes(above, place), True)
                        better = T.if_then_else(best >= 0, precedes(place, best), True)
                        with T.If(T.if_then_else(left, better, False)), T.Then():
                            places[here] = tvm.tirx.Cast(dtype, place)
                    values[here] = at(places[here])
            return builder.get()

    results = [
        tvm.tirx.decl_buffer(result_shape, kind, name) for kind, name in ((data.dtype, "values"), (dtype, "places"))
    ]
    return te.extern([result_shape] * 2, [data], generate, out_buffers=results, name="topk", tag="topk")


def _precedes(at: _At, one: tvm.ir.Expr, other: tvm.ir.Expr, *, largest: bool, floats: bool) -> tvm.ir.Expr:
    """Compare positions `one` and `other` by a total order, so that every rank is found."""
    a, b = at(one), at(other)
    beats, ties = (a > b if largest else a < b), a == b
    if floats:
        # not `a != a`, which TVM takes to be false
        odd_a, odd_b = tvm.tirx.isnan(a), tvm.tirx.isnan(b)
        beats = tvm.tirx.any(beats, tvm.tirx.all(tvm.tirx.Not(odd_a), odd_b))
        ties = tvm.tirx.any(ties, tvm.tirx.all(odd_a, odd_b))
    return tvm.tirx.any(beats, tvm.tirx.all(ties, one < other))
