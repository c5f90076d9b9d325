"""Buffers of kernels with many vector loops are flattened as by TVM's own pass."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.tvm


@pytest.mark.parametrize("loops", [3, 200])
def test_many_loops_are_flattened_as_by_tvm(loops: int) -> None:
    import tvm
    import tvm_ffi
    from tvm import tirx
    from tvm.ir import IRModule
    from tvm.tirx import BufferStore, For, ForKind, PrimFunc, SeqStmt

    from passfit.tir.lowering.flatten_buffers import flatten_buffers

    buffer = tirx.decl_buffer((loops, 16), "float32", "y")
    body = []
    for number in range(loops):
        lane = tvm.tirx.Var("lane", "int32")
        extent = 8 if number % 3 else 4
        store = BufferStore(buffer, tirx.const(1.0, "float32"), [tirx.const(number, "int32"), lane + extent])
        body.append(For(lane, 0, extent, ForKind.VECTORIZED, store))
    kernel = PrimFunc([buffer], SeqStmt(body))
    module = IRModule({"main": kernel})
    assert tvm_ffi.structural_equal(flatten_buffers(module)["main"], tirx.transform.FlattenBuffer()(module)["main"])
