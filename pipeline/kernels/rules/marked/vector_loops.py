"""Vectorise the loops that a kernel marks as independent along memory.

    for j in 0..n: body(j)      becomes      for b in 0..n / lanes: vector i in 0..lanes: body(b · lanes + i)
                                             vector i in 0..n mod lanes: body(n / lanes · lanes + i)
"""

from __future__ import annotations

import tvm_ffi
from tvm.ir import Expr, Var
from tvm.tirx import For, PrimFunc, Stmt

from ....frontend.relax.recurrent.arrays import ALONG_MEMORY
from ....tir.expressions import replaced
from ....tir.loop_nests import int64, sequence

_SERIAL, _VECTORIZED = 0, 2


def vector_loops(kernel: PrimFunc, lanes: int) -> PrimFunc:
    """Return `kernel` with its marked loops in vectors of `lanes`; the kernel itself if it marks none."""

    def vectorised(loop: For) -> Stmt:
        if ALONG_MEMORY not in loop.annotations:
            return loop
        return _in_vectors(loop, lanes)

    body = tvm_ffi.structural_map(kernel.body, (For, vectorised))
    return kernel if body.same_as(kernel.body) else kernel.with_body(body)


def _in_vectors(loop: For, lanes: int) -> Stmt:
    count = int(loop.extent)
    whole, rest = divmod(count, lanes) if lanes > 1 else (0, count)
    parts = []
    if whole:
        block, lane = Var("block", loop.loop_var.ty), Var("lane", loop.loop_var.ty)
        vector = _loop(lane, lanes, _VECTORIZED, loop, block * lanes + lane)
        parts.append(vector if whole == 1 else For(block, int64(0), int64(whole), _SERIAL, vector))
        if whole == 1:
            parts[-1] = replaced(vector, {block: int64(0)})
    if rest:
        last = Var("last", loop.loop_var.ty)
        parts.append(_loop(last, rest, _VECTORIZED if lanes > 1 and rest > 1 else _SERIAL, loop, last + whole * lanes))
    return sequence(parts)


def _loop(var: Var, count: int, kind: int, loop: For, place: Expr) -> Stmt:
    return For(var, int64(0), int64(count), kind, replaced(loop.body, {loop.loop_var: place}))
