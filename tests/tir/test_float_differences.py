"""Test differences, comparisons and logic of floats: infinities, NaN and rounding survive TVM's simplification."""

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


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize(
    "operators", ["Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Equal", "Less GreaterOrEqual"]
)
def test_no_comparison_with_nan_holds_and_its_negation_does(operators: str, dtype: str) -> None:
    """Compare a negated comparison, or two that are opposites but for NaN, with ONNX Runtime."""
    import numpy as np
    import onnxruntime
    from onnx import TensorProto, helper

    from passfit import runtime

    names = operators.split()
    nodes = [helper.make_node(name, ["x", "y"], [name]) for name in names]
    nodes.append(helper.make_node("Not" if len(names) == 1 else "Or", names, ["result"]))
    number = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    given = [helper.make_tensor_value_info(name, number, [36]) for name in "xy"]
    graph = helper.make_graph(
        nodes, "compared", given, [helper.make_tensor_value_info("result", TensorProto.BOOL, [36])]
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()
    odd = np.array([np.nan, 1, -1, 0, np.inf, -np.inf], dtype)
    values = {"x": np.repeat(odd, 6), "y": np.tile(odd, 6)}
    ours, theirs = (each.InferenceSession(model).run(None, values)[0] for each in (runtime, onnxruntime))
    np.testing.assert_array_equal(ours, theirs)


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
