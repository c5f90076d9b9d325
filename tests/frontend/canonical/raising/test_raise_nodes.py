"""A node of an old operator set keeps its meaning in the form of a new one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, parser

from passfit.errors import ModelError
from passfit.frontend.canonical.opset import raise_opset
from passfit.frontend.canonicalise import import_model

from ....models import model_of, run, save

node = helper.make_node
RNG = np.random.default_rng(0)
PLANES = [1, 2, 5, 6]


def floats(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def scales(*values: float) -> dict[str, np.ndarray]:
    return {"s": np.float32(values)}


#: nodes, constants, shape of `x`, operator set: ONNX Runtime runs these sets itself
CASES = {
    "Upsample of set 7": ([node("Upsample", ["x"], ["y"], scales=[1.0, 1.0, 1.3, 2.5])], {}, PLANES, 7),
    "linear Upsample of set 9": ([node("Upsample", ["x", "s"], ["y"], mode="linear")], scales(1, 1, 2, 3), PLANES, 9),
    "linear Resize of set 10": ([node("Resize", ["x", "s"], ["y"], mode="linear")], scales(1, 1, 0.5, 2), PLANES, 10),
    "nearest Resize of set 10 that grows and shrinks": ([node("Resize", ["x", "s"], ["y"])], scales(1, 1, 0.6, 1.7), PLANES, 10),
    "Softmax of set 7": ([node("Softmax", ["x"], ["y"])], {}, [2, 3, 4], 7),
    "Softmax of set 11 along an axis from the end": ([node("Softmax", ["x"], ["y"], axis=-2)], {}, [2, 3, 4], 11),
    "LogSoftmax of set 11": ([node("LogSoftmax", ["x"], ["y"])], {}, [2, 3, 4], 11),
    "Hardmax of set 11": ([node("Hardmax", ["x"], ["y"])], {}, [2, 3, 4], 11),
    "BatchNormalization by element": (
        [node("BatchNormalization", ["x", *"sbmv"], ["y"], spatial=0)],
        {"s": floats(3, 4), "b": floats(3, 4), "m": floats(3, 4), "v": abs(floats(3, 4))}, [2, 3, 4], 7,
    ),
    "BatchNormalization of set 7": (
        [node("BatchNormalization", ["x", *"sbmv"], ["y"], spatial=1)], {"s": floats(3), "b": floats(3), "m": floats(3), "v": abs(floats(3))}, [2, 3, 4], 7,
    ),
    "Clip of set 7": ([node("Clip", ["x"], ["y"], max=0.5)], {}, [9], 7),
    "Pad of set 7": ([node("Pad", ["x"], ["y"], pads=[0, -1, 1, 2], value=2.5)], {}, [3, 4], 7),
    "Slice of set 7": ([node("Slice", ["x"], ["y"], axes=[1, 0], starts=[-3, 0], ends=[9, 2])], {}, [3, 4], 7),
    "TopK of set 7": ([node("TopK", ["x"], ["y", "i"], k=2)], {}, [3, 4], 7),
    "Squeeze, Unsqueeze and ReduceSum of set 11": (
        [node("Unsqueeze", ["x"], ["a"], axes=[0, 2]), node("ReduceSum", ["a"], ["b"], axes=[-1]), node("Squeeze", ["b"], ["y"], axes=[0])], {}, [3, 4], 11,
    ),
    "Split of set 7": ([node("Split", ["x"], ["a", "b"], axis=1, split=[1, 3]), node("Concat", ["b", "a"], ["y"], axis=1)], {}, [3, 4], 7),
    "Scatter": ([node("Scatter", ["x", "i", "u"], ["y"], axis=1)], {"i": np.asarray([[1, 0]]), "u": floats(1, 2)}, [3, 4], 9),
    "Dropout of set 7": ([node("Dropout", ["x"], ["y"], ratio=0.4)], {}, [3, 4], 7),
    "MaxPool padded at the lower end": ([node("MaxPool", ["x"], ["y"], kernel_shape=[2, 3], strides=[2, 2], auto_pad="SAME_LOWER")], {}, PLANES, 8),
    "a sequence, for which all is raised to set 18": (
        [
            node("SplitToSequence", ["x", "n"], ["q"], axis=1), node("SequenceAt", ["q", "i"], ["a"]),
            node("ReduceMean", ["a"], ["b"], axes=[1]), node("Softmax", ["b"], ["c"]), node("Add", ["x", "c"], ["y"]),
        ],
        {"n": np.asarray([1, 3]), "i": np.asarray(1)}, [3, 4], 11,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_raised_node_computes_what_the_old_one_did(tmp_path: Path, name: str) -> None:
    nodes, constants, shape, opset = CASES[name]
    model = model_of(nodes, {"x": shape}, ["y"], constants, opset=opset)
    imported = import_model(save(model, tmp_path))
    assert imported.opset_import[0].version >= 13
    x = floats(*shape)
    np.testing.assert_allclose(run(imported, {"x": x})[0], run(model, {"x": x})[0], rtol=1e-4, atol=1e-6)


X, ROW = floats(2, 3, 4), floats(3)
#: sets that ONNX Runtime does not run, with what their specifications say
FIRST_SETS = {
    "operands spread from an axis on": ([node("Add", ["x", "c"], ["y"], axis=1, broadcast=1)], {"c": ROW}, 6, X + ROW[:, None]),
    "slopes by channel": ([node("PRelu", ["x", "c"], ["y"])], {"c": ROW}, 6, np.where(X < 0, X * ROW[:, None], X)),
    "a shape as attribute": ([node("Reshape", ["x"], ["y"], shape=[4, 6])], {}, 1, X.reshape(4, 6)),
    "Concat without axis": ([node("Concat", ["x", "x"], ["y"])], {}, 1, np.concatenate([X, X], 1)),
    "Tile of one axis": ([node("Tile", ["x", "n", "a"], ["y"])], {"n": np.float32(2), "a": np.float32(1)}, 1, np.tile(X, (1, 2, 1))),
    "Dropout in inference": ([node("Dropout", ["x"], ["y"], is_test=1)], {}, 6, X),
    "an idle attribute": ([node("Relu", ["x"], ["y"], consumed_inputs=[0])], {}, 1, np.maximum(X, 0)),
    "a cast by name": ([node("Cast", ["x"], ["y"], to="INT32")], {}, 1, X.astype(np.int32)),
    "bounds of two sides": ([node("Pad", ["x"], ["y"], paddings=[0, 0, 1, 0, 0, 0])], {}, 1, np.pad(X, [(0, 0), (0, 0), (1, 0)])),
}  # fmt: skip


@pytest.mark.parametrize("name", FIRST_SETS)
def test_the_first_sets_mean_what_their_specification_says(name: str) -> None:
    nodes, constants, opset, expected = FIRST_SETS[name]
    raised = raise_opset(model_of(nodes, {"x": X.shape}, ["y"], constants, opset=opset))
    del raised.graph.value_info[:]
    raised.graph.output[0].type.tensor_type.elem_type = helper.np_dtype_to_tensor_dtype(expected.dtype)
    raised.graph.output[0].type.tensor_type.ClearField("shape")
    np.testing.assert_allclose(run(raised, {"x": X})[0], expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("made", "constants"),
    [(node("Dropout", ["x"], ["y"]), {}), (node("BatchNormalization", ["x", *"cccc"], ["y"]), {"c": ROW})],
    ids=lambda each: each.op_type if isinstance(each, onnx.NodeProto) else "",
)
def test_training_is_refused(made: onnx.NodeProto, constants: dict[str, np.ndarray]) -> None:
    with pytest.raises(ModelError, match="of operator set 6 cannot be compiled: it is in training mode"):
        raise_opset(model_of([made], {"x": X.shape}, ["y"], constants, opset=6))


@pytest.mark.parametrize("opset", [0, -1])
def test_a_set_that_does_not_exist_is_refused(opset: int) -> None:
    with pytest.raises(ModelError, match="does not exist"):
        raise_opset(model_of([node("Relu", ["x"], ["y"])], {"x": [3]}, ["y"], opset=opset))


#: calls with and without attributes: defaults count in each, and in calls of other functions
FUNCTIONS = {
    "defaults": """
        <ir_version: 10, opset_import: ["" : 17, "l" : 1]> g (float[3,4] x) => (float[3,4] y) { a = l.F(x) b = l.F<k=0.3, axis=1>(x) y = Add(a, b) }
        <domain: "l", opset_import: ["" : 17]> F <k: float = 0.7, axis: int = 0>(x) => (y)
        { t = LeakyRelu<alpha: float = @k>(x) y = Softmax<axis: int = @axis>(t) }""",
    "nested": """
        <ir_version: 10, opset_import: ["" : 17, "l" : 1]> g (float[3,4] x) => (float[3,4] y) { a = l.G(x) b = l.G<a=0.3>(x) y = Add(a, b) }
        <domain: "l", opset_import: ["" : 17]> F <k: float = 0.7>(x) => (y) { y = LeakyRelu<alpha: float = @k>(x) }
        <domain: "l", opset_import: ["" : 17, "l" : 1]> G <a: float = 0.9>(x) => (y) { s = l.F<k: float = @a>(x) t = l.F(x) y = Mul(s, t) }""",
    "in a branch": """
        <ir_version: 10, opset_import: ["" : 17, "l" : 1]> g (float[3,4] x, bool c) => (float[3,4] y) { a = l.F(x, c) b = l.F<k=0.3>(x, c) y = Add(a, b) }
        <domain: "l", opset_import: ["" : 17]> F <k: float = 0.7>(x, c) => (y)
        { y = If(c) <then_branch = t () => (a) { a = LeakyRelu<alpha: float = @k>(x) }, else_branch = e () => (b) { b = Elu<alpha: float = @k>(x) }> }""",
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_have_the_defaults_of_their_attributes(tmp_path: Path, name: str) -> None:
    model = parser.parse_model(FUNCTIONS[name])
    imported = import_model(save(model, tmp_path))
    inputs = {"x": floats(3, 4), "c": np.asarray(False)}
    inputs = {value.name: inputs[value.name] for value in model.graph.input}
    np.testing.assert_allclose(run(imported, inputs)[0], run(model, inputs)[0], rtol=1e-5, atol=1e-6)


def test_a_function_of_an_older_set_is_raised_to_that_of_the_model(tmp_path: Path) -> None:
    text = """
        <ir_version: 10, opset_import: ["" : 18, "l" : 1]> g (float[3,4] x) => (float[3,1] y) { y = l.F(x) }
        <domain: "l", opset_import: ["" : 13]> F (x) => (y) { y = ReduceMean<axes = [1]>(x) }"""
    x = floats(3, 4)
    imported = import_model(save(parser.parse_model(text), tmp_path))
    np.testing.assert_allclose(run(imported, {"x": x})[0], x.mean(1, keepdims=True), rtol=1e-5)


def test_constant_slopes_of_channels_stay_constants(tmp_path: Path) -> None:
    model = model_of([node("PRelu", ["x", "s"], ["y"])], {"x": PLANES}, ["y"], {"s": np.float32([1, 2])}, opset=6)
    assert [each.op_type for each in import_model(save(model, tmp_path)).graph.node] == ["PRelu"]


@pytest.mark.parametrize("opset", [23, 24, 25])
def test_an_operator_that_onnx_defines_by_simpler_ones_is_expanded_in_every_set(tmp_path: Path, opset: int) -> None:
    """Also where operands are left out before another, and its definition is of an older set."""
    nodes = [node("Attention", ["x", "x", "x", "", "past", "past"], ["y", "k", "v"], q_num_heads=2, kv_num_heads=2)]
    past = {"past": floats(1, 2, 3, 2)}
    model = model_of(nodes, {"x": [1, 5, 4]}, ["y", "k", "v"], past, opset=opset)
    imported = import_model(save(model, tmp_path))
    assert "Attention" not in {each.op_type for each in imported.graph.node}
    x = floats(1, 5, 4)
    for got, expected in zip(run(imported, {"x": x}), run(model, {"x": x}), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)
