"""Vectorise innermost loops over neighbours for Arm's Helium (MVE), as LLVM does for other targets: see helium.py.

    for i in range(10): y[i] = f(x[i], 2)    ─►    for i in range(2): y[4 i : 4 i + 4] = f(x[4 i : 4 i + 4], 2)
                                                   for i in range(2): y[8 + i] = f(x[8 + i], 2)

A vector has four lanes, or sixteen where all numbers are bytes. A result may replace an operand that is read at its own place or ahead.
"""

from __future__ import annotations

import tvm_ffi
from tvm import sym, tirx
from tvm.ir import Call, Expr, Range, TensorLoad, Var
from tvm.tirx import BufferStore, For, IntImm, PrimFunc, SeqStmt, Stmt

from ...tir.expressions import collect, computed, is_contiguous, loads, map_body, replaced, uses
from ...tir.loop_nests import analyzer_over, bounds_of
from ...tir.rolled_loops import is_rolled
from ...tir.switches import switchable
from .helium import has_vectors

_SERIAL, _VECTORIZED = 0, 2
_BYTES, _WORDS = ("int8", "uint8"), ("int32", "float32")
#: functions that a vector takes, and operations of integers that it does not
_FUNCTIONS = ("tirx.exp", "tirx.sigmoid", "tirx.tanh", "passfit.erf", "tirx.fabs", "tirx.reinterpret")
_DIVISIONS = (tirx.Div, tirx.Mod, tirx.FloorDiv, tirx.FloorMod)


@switchable
def vectorise_loops(kernel: PrimFunc) -> PrimFunc:
    """Mark vectors in the loops of a flattened kernel; return `kernel` itself on other targets."""
    if not has_vectors(kernel):
        return kernel
    dtypes = {*_BYTES, *(_WORDS if has_vectors(kernel, floats=True) else _WORDS[:1])}
    found: dict[Var, list[tuple[int, int] | None]] = {}
    for loop in collect(kernel.body, For):
        found.setdefault(loop.loop_var, []).append(bounds_of(loop))
    spans = {var: list(filter(None, each)) for var, each in found.items() if None not in each}
    ranges = {var: Range(min(at for at, _ in each), max(sum(span) for span in each)) for var, each in spans.items()}
    analyzer = analyzer_over(ranges)
    return map_body(kernel, (For, lambda loop: _vectorised(loop, dtypes, analyzer)))


def _vectorised(loop: For, dtypes: set[str], analyzer: sym.Analyzer) -> Stmt:
    store = loop.body
    if not isinstance(store, BufferStore) or int(loop.kind) != _SERIAL or is_rolled(loop):
        return loop
    numbers = {str(store.buffer.ty.dtype), *({str(each.ty.dtype) for each in computed(store.value)} - {"bool"})}
    lanes = 16 if numbers <= set(_BYTES) else 4
    if not isinstance(loop.extent, IntImm) or int(loop.extent) == 0:  # of padding that another row alone has
        return loop
    if not numbers <= dtypes or not _is_parallel(store, loop.loop_var, analyzer):
        return loop
    whole, rest = divmod(int(loop.extent), lanes)
    block, lane, last = (Var(name, str(loop.loop_var.ty.dtype)) for name in ("block", "lane", "last"))

    def at(place: Expr) -> Stmt:
        return replaced(store, {loop.loop_var: loop.min + place})

    def over(var: Var, extent: int, body: Stmt, kind: int = _SERIAL) -> For:
        return For(var, tirx.const(0, var.ty.dtype), tirx.const(extent, var.ty.dtype), kind, body)

    vectors = over(block, whole, over(lane, lanes, at(block * lanes + lane), _VECTORIZED))
    parts = [vectors] * (whole > 0) + [over(last, rest, at(whole * lanes + last))] * (rest > 0)
    return parts[0] if len(parts) == 1 else SeqStmt(parts)


def _is_parallel(store: BufferStore, var: Var, analyzer: sym.Analyzer) -> bool:
    """Return whether steps of `var` are independent, all elements neighbours, and no operation is one that vectors lack."""
    value, element = store.value, tirx.BufferLoad(store.buffer, store.indices)
    if not is_contiguous(value, var) or not is_contiguous(element, var) or not uses(element, var):
        return False
    if any(str(load.ty.dtype) == "bool" or len(load.indices) != 1 for load in loads(value)):
        return False
    replaces = [load.indices[0] for load in loads(value) if load.source.same_as(store.buffer)]
    if not all(analyzer.can_prove(index - store.indices[0] >= 0) for index in replaces):
        return False
    if any(getattr(call.op, "name", "") not in _FUNCTIONS for call in collect(value, Call)):
        return False
    if any("int" in str(each.ty.dtype) for each in computed(value) if isinstance(each, _DIVISIONS)):
        return False
    return not uses(tvm_ffi.structural_map(value, (TensorLoad, lambda load: tirx.const(0, str(load.ty.dtype)))), var)
