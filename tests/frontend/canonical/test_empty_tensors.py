"""Compare models with empty tensors with ONNX Runtime; no kernel may touch such a tensor."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

from passfit.errors import ModelError
from passfit.frontend.canonical.shapes import static_shape, value_types
from passfit.frontend.canonicalise import import_model
from passfit.frontend.source.import_options import ImportOptions

from ...models import model_of, run, save

node = helper.make_node
REDUCTIONS = (
    "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd",
    "ReduceSum", "ReduceSumSquare",
)  # fmt: skip


def _integers(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def _lstm() -> onnx.NodeProto:
    return node("LSTM", ["x", "w", "r"], ["y", "h"], hidden_size=2)


#: nodes, inputs, outputs, constants
MODELS: dict[str, tuple] = {
    "element-wise": ([node("Relu", ["x"], ["y"])], {"x": [0, 3]}, ["y"], {}),
    "broadcast": ([node("Add", ["x", "z"], ["y"])], {"x": [1, 0], "z": [2, 1]}, ["y"], {}),
    "input-unread": ([node("Exp", ["z"], ["y"])], {"x": [0, 3], "z": [5]}, ["y"], {}),
    "input-is-output": ([], {"x": [0, 3]}, ["x"], {}),
    "constant-output": ([node("Identity", ["c"], ["y"])], {"x": [3]}, ["y"], {"c": np.zeros((0, 3), np.float32)}),
    "concat-part": ([node("Relu", ["x"], ["r"]), node("Concat", ["z", "r", "z"], ["y"], axis=0)], {"x": [0, 3], "z": [5, 3]}, ["y"], {}),
    "concat-one-left": ([node("Concat", ["x", "z"], ["y"], axis=0)], {"x": [0, 3], "z": [5, 3]}, ["y"], {}),
    "empty-slice": ([node("Slice", ["x", "s", "s"], ["y"])], {"x": [5, 3]}, ["y"], {"s": _integers(2)}),
    "split-part": ([node("Split", ["x", "s"], ["a", "b", "c"])], {"x": [5, 3]}, ["a", "b", "c"], {"s": _integers(2, 0, 3)}),
    "split-one-left": ([node("Split", ["x", "s"], ["a", "b"])], {"x": [5, 3]}, ["a", "b"], {"s": _integers(0, 5)}),
    "product": ([node("MatMul", ["x", "z"], ["y"])], {"x": [2, 0], "z": [0, 3]}, ["y"], {}),
    "product-and-sum": ([node("Gemm", ["x", "z", "c"], ["y"], beta=0.5)], {"x": [2, 0], "z": [0, 3], "c": [3]}, ["y"], {}),
    "einsum": ([node("Einsum", ["x", "z"], ["y"], equation="ij,jk->ik")], {"x": [2, 0], "z": [0, 3]}, ["y"], {}),
    "pad": ([node("Pad", ["x", "p"], ["y"])], {"x": [0, 3]}, ["y"], {"p": _integers(1, 0, 0, 0)}),
    "convolution": ([node("Conv", ["x", "w"], ["y"], pads=[1] * 4)], {"x": [1, 1, 0, 3]}, ["y"], {"w": np.ones((1, 1, 1, 3), np.float32)}),
    "no-updates": ([node("ScatterND", ["x", "i", "u"], ["y"])], {"x": [5, 3], "u": [0, 3]}, ["y"], {"i": np.zeros((0, 1), np.int64)}),
    "no-indices": ([node("Gather", ["x", "i"], ["y"])], {"x": [5, 3]}, ["y"], {"i": np.zeros(0, np.int64)}),
    "no-steps": ([_lstm()], {"x": [0, 1, 3]}, ["y", "h"], {"w": np.ones((1, 8, 3), np.float32), "r": np.ones((1, 8, 2), np.float32)}),
    "reshaped": ([node("Reshape", ["x", "s"], ["y"], allowzero=1)], {"x": [0, 3, 4]}, ["y"], {"s": _integers(4, 3, 0)}),
    "no-batch": (
        [node("Conv", ["x", "w"], ["c"], pads=[1] * 4), node("GlobalAveragePool", ["c"], ["g"]), node("Flatten", ["g"], ["y"])],
        {"x": [0, 1, 4, 3]}, ["y"], {"w": np.ones((2, 1, 3, 3), np.float32)},
    ),
} | {
    op: ([node(op, ["x", "a"], ["r"], keepdims=0), node("Add", ["r", "z"], ["y"])], {"x": [2, 0, 3], "z": [3]}, ["r", "y"], {"a": _integers(1)})
    for op in REDUCTIONS
}  # fmt: skip


def _values(inputs: Mapping[str, list[int]]) -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)
    return {name: random.standard_normal(shape).astype(np.float32) for name, shape in inputs.items()}


@pytest.mark.parametrize("name", MODELS)
def test_the_canonical_model_computes_what_onnx_runtime_does(name: str, tmp_path: Path) -> None:
    if name == "product-and-sum" and onnxruntime.__version__.startswith("1.31."):
        pytest.skip("onnxruntime before 1.32 leaves beta out of a Gemm of empty matrices")
    nodes, inputs, outputs, constants = MODELS[name]
    model = model_of(nodes, inputs, outputs, constants, opset=18)
    canonical = import_model(save(model, tmp_path))
    values = _values(inputs)
    for got, expected in zip(run(canonical, values), run(model, values), strict=True):
        assert got.dtype == expected.dtype and got.shape == expected.shape
        np.testing.assert_array_equal(got, expected)
    assert [value.name for value in canonical.graph.input] == list(inputs)
    assert [value.name for value in canonical.graph.output] == outputs


@pytest.mark.parametrize("name", MODELS)
def test_no_node_computes_on_a_tensor_without_elements(name: str, tmp_path: Path) -> None:
    canonical = import_model(save(model_of(*MODELS[name], opset=18), tmp_path))
    types = value_types(canonical.graph)
    empty = {name for name, kind in types.items() if 0 in (static_shape(kind) or ())}
    computing = [each for each in canonical.graph.node if empty & {*each.input[:1], *each.output}]
    assert {each.op_type for each in computing} <= {"Identity"}


@pytest.mark.parametrize("opset", [12, 13, 22])
def test_every_operator_set_is_taken(opset: int, tmp_path: Path) -> None:
    split = node("Split", ["x"], ["a", "b"], split=[0, 5]) if opset < 13 else node("Split", ["x", "s"], ["a", "b"])
    made = model_of([split], {"x": [5, 3]}, ["a", "b"], {} if opset < 13 else {"s": _integers(0, 5)}, opset=opset)
    shapes = [
        [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        for value in import_model(save(made, tmp_path)).graph.output
    ]
    assert shapes == [[0, 3], [5, 3]]


@pytest.mark.parametrize(
    "model",
    [
        model_of([node("GlobalMaxPool", ["x"], ["y"])], {"x": [1, 3, 0]}, ["y"]),
        model_of(
            [node("GRU", ["x", "w", "r", "", "", "start"], ["", "y"], hidden_size=2)], {"x": [0, 1, 3], "start": [1, 1, 2]},
            ["y"], {"w": np.ones((1, 6, 3), np.float32), "r": np.ones((1, 6, 2), np.float32)},
        ),
    ],
)  # fmt: skip
def test_what_has_no_result_is_refused_by_name(model: onnx.ModelProto, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=f"{model.graph.node[0].op_type} node .* no elements"):
        import_model(save(model, tmp_path))


def test_a_shape_without_sizes_is_no_operand(tmp_path: Path) -> None:
    """A reshape to a scalar reads an empty constant."""
    made = model_of([node("Reshape", ["x", "s"], ["y"])], {"x": [1]}, ["y"], {"s": np.zeros(0, np.int64)})
    assert [each.op_type for each in import_model(save(made, tmp_path)).graph.node] == ["Reshape"]


@pytest.mark.tvm
def test_the_graph_has_the_shapes_of_the_file(tmp_path: Path) -> None:
    pytest.importorskip("tvm")
    from passfit.frontend.relax.to_relax import to_relax

    made = model_of([node("Exp", ["z"], ["y"])], {"x": [0, 3], "z": [5]}, ["y"], {})
    x, _ = to_relax(import_model(save(made, tmp_path)))["main"].params
    assert [int(extent) for extent in x.ty.shape] == [0, 3]


@pytest.mark.parametrize("op", ["Identity", "RegexFullMatch", "StringConcat", "StringSplit"])
def test_empty_tensors_of_strings_are_refused(op: str, tmp_path: Path) -> None:
    inputs, attributes = ["x"] * (2 if op == "StringConcat" else 1), {"pattern": "a"} if op == "RegexFullMatch" else {}
    results = {"y": TensorProto.BOOL if attributes else TensorProto.STRING} | (
        {"n": TensorProto.INT64} if op == "StringSplit" else {}
    )
    made = model_of(
        [node(op, inputs, list(results), **attributes)],
        {"x": [2, 0]},
        list(results),
        opset=20,
        dtypes={"x": TensorProto.STRING, **results},
    )
    with pytest.raises(ModelError, match="'x' holds strings"):
        import_model(save(made, tmp_path))


def test_an_output_that_is_a_sequence_is_refused_and_can_be_dropped(tmp_path: Path) -> None:
    made = model_of([node("Relu", ["x"], ["y"]), node("SequenceConstruct", ["y", "y"], ["s"])], {"x": [2, 3]}, ["y"])
    made.graph.output.append(helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, None))
    with pytest.raises(ModelError, match="'s' is a sequence.*--output"):
        import_model(path := save(made, tmp_path))
    assert [each.op_type for each in import_model(path, ImportOptions(outputs=["y"])).graph.node] == ["Relu"]
