"""Flatten the buffers of kernels with thousands of loops in less than quadratic time.

    for a in vectorized(8): …            for v in vectorized(8): …
    for b in vectorized(8): …    ─►      for v in vectorized(8): …    ─►  FlattenBuffer  ─►  ConvertSSA

TVM's pass compares each index with all it knows of each loop variable, in scope or not. So innermost vector loops of one
kind share a variable meanwhile: the result is the same.
"""

from __future__ import annotations

import tvm
import tvm_ffi
from tvm import tirx
from tvm.ir import IRModule, Var
from tvm.tirx import For, ForKind, IntImm, PrimFunc

from ..expressions import replaced

#: vector loops from which sharing is worth it
_MANY = 128


@tirx.transform.prim_func_pass(opt_level=0, name="passfit.FlattenBuffer")
def flatten_buffers(function: PrimFunc, _module: IRModule, _context: tvm.transform.PassContext) -> PrimFunc:
    """Apply TVM's FlattenBuffer."""
    shared = _with_shared_variables(function)
    passes = [tirx.transform.FlattenBuffer(), *([] if shared is function else [tirx.transform.ConvertSSA()])]
    return tvm.transform.Sequential(passes)(IRModule({"main": shared}))["main"]


def _with_shared_variables(function: PrimFunc) -> PrimFunc:
    loops = 0

    def see(loop: For) -> None:
        nonlocal loops
        loops += loop.kind == ForKind.VECTORIZED

    tvm_ffi.structural_walk(function.body, [(For, see)])
    if loops < _MANY:
        return function
    known: dict[tuple[str, str, int, int], Var] = {}

    def sharing(loop: For) -> For:
        fixed = isinstance(loop.min, IntImm) and isinstance(loop.extent, IntImm)
        if loop.kind != ForKind.VECTORIZED or not fixed or _has_loops(loop):
            return loop
        own = loop.loop_var
        var = known.setdefault((own.name, str(own.ty), int(loop.min), int(loop.extent)), own)
        if var.same_as(own):
            return loop
        return For(var, loop.min, loop.extent, loop.kind, replaced(loop.body, {own: var}), loop.thread_binding, loop.annotations)

    return function.with_body(tvm_ffi.structural_map(function.body, (For, sharing)))


def _has_loops(loop: For) -> bool:
    found: list[For] = []
    tvm_ffi.structural_walk(loop.body, [(For, found.append)])
    return bool(found)
