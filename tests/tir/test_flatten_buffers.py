"""Buffers of kernels with many loops are flattened as by TVM's own pass."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.tvm


@pytest.mark.parametrize("loops", [3, 200])
def test_many_loops_are_flattened_as_by_tvm(loops: int) -> None:
    import tvm_ffi
    from tvm import tirx
    from tvm.ir import IRModule
    from tvm.tirx import BufferStore, For, ForKind, PrimFunc, SeqStmt

    from passfit.tir.lowering.flatten_buffers import flatten_buffers

    buffer = tirx.decl_buffer((loops, 32), "float32", "y")
    body = []
    for number in range(loops):
        lane, *around = (tirx.Var(name, "int32") for name in ("lane", "part", "part"))
        nested = around[: number % 3]  # loops of one name and range, one in the other
        index = sum(nested, lane + (8 if number % 2 else 4))
        nest = BufferStore(buffer, tirx.const(1.0, "float32"), [tirx.const(number, "int32"), index])
        for var, extent, kind in (
            (lane, 8 if number % 2 else 4, ForKind.VECTORIZED),
            *((var, 2, ForKind.SERIAL) for var in nested),
        ):
            nest = For(var, 0, extent, kind, nest)
        body.append(nest)
    kernel = PrimFunc([buffer], SeqStmt(body))
    module = IRModule({"main": kernel})
    assert tvm_ffi.structural_equal(flatten_buffers(module)["main"], tirx.transform.FlattenBuffer()(module)["main"])
