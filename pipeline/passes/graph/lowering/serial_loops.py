"""Make the parallel loops of kernels serial, for a device has no thread pool of TVM's.

Imports TVM: only imported once a graph is legalized.
"""

from __future__ import annotations

import tvm_ffi
from tvm.ir import IRModule
from tvm.tirx import AttrStmt, For, PrimFunc, Stmt

from ....tir.loop_nests import with_fields

_SERIAL, _PARALLEL = 0, 1


def serial_loops(module: IRModule) -> IRModule:
    """Make the parallel loops of all kernels serial, and drop `pragma_scope`, which only draws warnings from LLVM."""
    result = IRModule(module.functions, attrs=module.attrs)
    for var, function in module.functions.items():
        if isinstance(function, PrimFunc):
            body = tvm_ffi.structural_map(function.body, [(For, _serial), (AttrStmt, _without_pragma)])
            if not body.same_as(function.body):
                result.update_func(var, function.with_body(body, function.span))
    return result


def _serial(loop: For) -> For:
    return with_fields(loop, kind=_SERIAL) if int(loop.kind) == _PARALLEL else loop


def _without_pragma(stmt: AttrStmt) -> Stmt:
    return stmt.body if stmt.attr_key == "pragma_scope" else stmt
