"""Conditions that are the same for all lanes of a vector leave it whole; the values stay."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.tvm


def _selecting(first: int, comparison: str):  # type: ignore[no-untyped-def]
    """Return the kernel that takes `a` up to place `first`, and the negative of `a` from there."""
    from tvm import tirx
    from tvm.tirx import GE, GT, LE, LT, BufferStore, For, ForKind, PrimFunc, Var

    a, y = tirx.decl_buffer((64,), "float32", "a"), tirx.decl_buffer((64,), "float32", "y")
    i, lane = Var("i", "int32"), Var("lane", "int32")
    place = i * 8 + lane
    negative = tirx.const(0.0, "float32") - a[place]
    condition, then, other = {
        "<=": (LE(first, place), negative, a[place]),
        ">=": (GE(first - 1, place), a[place], negative),
        "<": (LT(first - 1, place), negative, a[place]),
        ">": (GT(first, place), a[place], negative),
    }[comparison]
    store = BufferStore(y, tirx.if_then_else(condition, then, other), [place])
    loop = For(i, 0, 8, ForKind.SERIAL, For(lane, 0, 8, ForKind.VECTORIZED, store))
    return PrimFunc([a, y], loop)


COMPARISONS = pytest.mark.parametrize("comparison", ["<=", ">=", "<", ">"])


@COMPARISONS
@pytest.mark.parametrize(("first", "whole"), [(32, True), (40, True), (33, False)])
def test_vectors_stay_whole_where_their_lanes_agree(first: int, whole: bool, comparison: str) -> None:
    import tvm_ffi
    from tvm.tirx import BufferStore, Ramp

    from passfit.tir.workspace import until_storage_rewrite

    stores: list[BufferStore] = []
    lowered = until_storage_rewrite(_selecting(first, comparison))
    tvm_ffi.structural_walk(lowered.body, [(BufferStore, stores.append)])
    assert all(isinstance(store.indices[0], Ramp) for store in stores) == whole


@COMPARISONS
@pytest.mark.parametrize("first", [32, 33])
def test_values_stay(first: int, comparison: str) -> None:
    import numpy as np
    import tvm

    from passfit.codegen.llvm_pipelines import PACKED

    kernel = _selecting(first, comparison).with_attr("global_symbol", "main")
    compiled = tvm.tirx.build(tvm.ir.IRModule({"main": kernel}), target="llvm", pipeline=PACKED)
    a = np.arange(64, dtype=np.float32) + 1
    result = tvm.runtime.empty((64,), "float32")
    compiled["main"](tvm.runtime.tensor(a), result)
    np.testing.assert_array_equal(result.numpy(), np.where(np.arange(64) < first, a, -a))


def test_comparisons_of_floats_stay() -> None:
    """Of NaN neither `a <= b` nor `b < a` holds."""
    import tvm_ffi
    from tvm import tirx
    from tvm.ir import IRModule
    from tvm.tirx import LE, BufferStore, PrimFunc, Select

    from passfit.tir.lowering.strict_comparisons import strict_comparisons

    y = tirx.decl_buffer((1,), "float32", "y")
    value = Select(LE(y[0], tirx.const(1.0, "float32")), tirx.const(1.0, "float32"), tirx.const(2.0, "float32"))
    kernel = PrimFunc([y], BufferStore(y, value, [tirx.const(0, "int32")]))
    module = IRModule({"main": kernel})
    assert tvm_ffi.structural_equal(strict_comparisons(module)["main"], kernel)


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64"])
def test_comparisons_hold_in_every_width_up_to_the_last_integer(dtype: str) -> None:
    import numpy as np
    import tvm
    from tvm import tirx
    from tvm.ir import IRModule
    from tvm.tirx import GE, GT, LE, LT, BufferStore, PrimFunc, SeqStmt

    from passfit.tir.lowering.strict_comparisons import strict_comparisons

    bounds, count = np.iinfo(dtype), 7
    values = [bounds.min, bounds.min + 1, -1, 0, 1, bounds.max - 1, bounds.max]
    x, y = tirx.decl_buffer((count,), dtype, "x"), tirx.decl_buffer((count, count, 4, 2), "int32", "y")
    kinds = ((LE, np.less_equal), (GE, np.greater_equal), (LT, np.less), (GT, np.greater))
    expected, stores = np.empty((count, count, 4, 2), np.int32), []
    for row, column, kind, side in np.ndindex(expected.shape):
        build, compare = kinds[kind]
        order = slice(None, None, -1 if side else 1)
        condition = build(*(x[row], tirx.const(values[column], dtype))[order])
        stores.append(
            BufferStore(
                y, tirx.Select(condition, tirx.const(1, "int32"), tirx.const(0, "int32")), [row, column, kind, side]
            )
        )
        expected[row, column, kind, side] = compare(*(values[row], values[column])[order])
    kernel = PrimFunc([x, y], SeqStmt(stores)).with_attr("global_symbol", "main")
    compiled = tvm.tirx.build(strict_comparisons(IRModule({"main": kernel})), target="llvm")
    result = tvm.runtime.empty(expected.shape, "int32")
    compiled["main"](tvm.runtime.tensor(np.array(values, dtype)), result)
    np.testing.assert_array_equal(result.numpy(), expected)
