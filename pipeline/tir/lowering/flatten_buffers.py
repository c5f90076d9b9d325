"""Flatten the buffers of kernels with thousands of loops in less than quadratic time.

    for a in 8: …            for v in 8: …
    for b in 8: …    ─►      for v in 8: …    ─►  FlattenBuffer  ─►  ConvertSSA

TVM's pass compares each index with all it knows of each loop variable, in scope or not. So loops of one name, range and
height share a variable meanwhile: the result is the same.
"""

from __future__ import annotations

from collections.abc import Mapping

import tvm
import tvm_ffi
from tvm import tirx
from tvm.ir import IRModule, Var
from tvm.tirx import For, IntImm, PrimFunc

from ..expressions import collect, replaced
from ..loop_nests import with_fields

#: loops from which sharing is worth it
_MANY = 128


@tirx.transform.prim_func_pass(opt_level=0, name="passfit.FlattenBuffer")
def flatten_buffers(function: PrimFunc, _module: IRModule, _context: tvm.transform.PassContext) -> PrimFunc:
    """Apply TVM's FlattenBuffer."""
    shared = _share_variables(function)
    passes = [tirx.transform.FlattenBuffer(), *([] if shared is function else [tirx.transform.ConvertSSA()])]
    return tvm.transform.Sequential(passes)(IRModule({"main": shared}))["main"]


def _share_variables(function: PrimFunc) -> PrimFunc:
    if len(collect(function.body, For)) < _MANY:
        return function
    known: dict[tuple[str, str, int, int, int], Var] = {}
    #: by variable, the loops nested in its loop: those of one height never meet
    heights: dict[Var, int] = {}

    def sharing(loop: For) -> For:
        own, height = loop.loop_var, _height(loop, heights)
        fixed = isinstance(loop.min, IntImm) and isinstance(loop.extent, IntImm)
        var = known.setdefault((own.name, str(own.ty), int(loop.min), int(loop.extent), height), own) if fixed else own
        heights[var] = height
        if var.same_as(own):
            return loop
        return with_fields(loop, loop_var=var, body=replaced(loop.body, {own: var}))

    return function.with_body(tvm_ffi.structural_map(function.body, (For, sharing)))


def _height(loop: For, heights: Mapping[Var, int]) -> int:
    return max((1 + heights[inner.loop_var] for inner in collect(loop.body, For)), default=0)
