"""Test differences of equal floats: infinities, NaN and rounding survive TVM's simplification."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.tvm


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_floats_do_not_cancel(dtype: str) -> None:
    import numpy as np
    import tvm
    from tvm import s_tir, tirx
    from tvm.ir import IRModule
    from tvm.tirx import EQ, NE, BufferStore, Cast, For, PrimFunc, SeqStmt

    from passfit.tir.lowering.float_differences import float_differences

    values = np.array(
        [[1.5, 1e8], [np.nan, 1], [1, np.nan], [np.inf, 2], [2, -np.inf], [np.inf, -np.inf], [0.1, 1e30]], dtype
    )
    forms = {
        "x - x": lambda x, y: x - x,
        "x + y - y": lambda x, y: (x + y) - y,
        "x + y - x": lambda x, y: (x + y) - x,
        "x - (x + y)": lambda x, y: x - (x + y),
        "x - (y + x)": lambda x, y: x - (y + x),
        "x * y - x * y": lambda x, y: x * y - x * y,
    }
    a = tirx.decl_buffer(values.shape, dtype, "a")
    r = tirx.decl_buffer((len(forms) + 2, len(values)), dtype, "r")
    i = tirx.Var("i", "int32")
    x, y = a[i, 0], a[i, 1]
    results = [form(x, y) for form in forms.values()]
    results += [Cast(dtype, EQ(x, a[i, (i + 1) - i - 1])), Cast(dtype, NE(x, x))]
    stores = [BufferStore(r, value, [place, i]) for place, value in enumerate(results)]
    kernel = PrimFunc([a, r], For(i, 0, len(values), tirx.ForKind.SERIAL, SeqStmt(stores))).with_attr(
        "global_symbol", "main"
    )
    module = s_tir.transform.StmtSimplify()(float_differences(IRModule({"main": kernel})))
    result = tvm.runtime.empty(tuple(map(int, r.shape)), dtype)
    tvm.tirx.build(module, target="llvm")["main"](tvm.runtime.tensor(values), result)
    with np.errstate(all="ignore"):
        columns = values[:, 0], values[:, 1]
        expected = [form(*columns) for form in forms.values()]
    expected += [(columns[0] == columns[0]).astype(dtype), (columns[0] != columns[0]).astype(dtype)]
    np.testing.assert_array_equal(result.numpy(), np.stack(expected))


def test_other_differences_stay() -> None:
    import tvm_ffi
    from tvm import tirx
    from tvm.ir import IRModule
    from tvm.tirx import BufferStore, For, PrimFunc, SeqStmt

    from passfit.tir.lowering.float_differences import float_differences

    a, n = tirx.decl_buffer((9,), "float32", "a"), tirx.decl_buffer((9,), "int32", "n")
    i = tirx.Var("i", "int32")
    stores = [
        BufferStore(a, a[i + 1] - a[i], [i]),
        BufferStore(n, n[i] - n[i], [i]),
        BufferStore(a, a[i] + a[i + 1] - a[i + 2], [i]),
    ]
    kernel = PrimFunc([a, n], For(i, 0, 7, tirx.ForKind.SERIAL, SeqStmt(stores)))
    assert tvm_ffi.structural_equal(float_differences(IRModule({"main": kernel}))["main"], kernel)
