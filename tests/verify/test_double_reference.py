"""Test the evaluation in double precision: its operators against ONNX Runtime's, and its limits."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from passfit.errors import ModelError, NumericError
from passfit.frontend.canonicalise import import_model
from passfit.verify import cases as cases_module
from passfit.verify.cases import add_doubles, add_plain_sums, choose_cases
from passfit.verify.compare import Case, compare
from passfit.verify.doubles.double_reference import DoubleReference, NoDouble
from passfit.verify.doubles.evaluate_cases import evaluate_cases
from passfit.verify.reference import Reference

from ..models import model_of, save

FLOAT = TensorProto.FLOAT


def model_of_one(nodes, shape, constants=(), opset=17, out=FLOAT):
    return model_of(nodes, {"x": shape}, ["y"], constants, opset=opset, dtypes={"y": out})


def agrees(model, shape):
    x = np.random.default_rng(0).normal(0, 1, shape).astype(np.float32)
    try:
        expected = Reference(model)({"x": x})["y"]
    except ModelError:
        return  # a form ONNX Runtime refuses
    found = DoubleReference(model)({"x": x})["y"]
    assert found.dtype == np.float64 and found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


pads = st.one_of(
    st.tuples(*[st.integers(0, 1)] * 4).map(lambda each: {"pads": list(each)}),
    st.sampled_from(["SAME_UPPER", "SAME_LOWER", "VALID"]).map(lambda each: {"auto_pad": each}),
)
pairs = st.tuples(st.integers(1, 3), st.integers(1, 3)).map(list)


@given(st.sampled_from(["Conv", "ConvTranspose"]), st.sampled_from([1, 2, 4]), pairs, pairs, pairs, pads, st.booleans())
def test_convolutions_are_onnx_runtimes(kind, group, kernel, strides, dilations, padding, biased):
    random = np.random.default_rng(1)
    shape = (8, 4 // group, *kernel) if kind == "Conv" else (4, 8 // group, *kernel)
    constants = {"w": random.normal(0, 1, shape).astype(np.float32)}
    if biased:
        constants["b"] = random.normal(0, 1, 8).astype(np.float32)
    if "auto_pad" in padding:
        dilations = [1, 1]
        if kind == "ConvTranspose":  # ONNX Runtime's result is smaller than ONNX says where strides skip elements
            strides = [1, 1]
    attributes = {"kernel_shape": kernel, "strides": strides, "dilations": dilations, "group": group, **padding}
    node = helper.make_node(kind, ["x", *constants], ["y"], **attributes)
    agrees(model_of_one([node], (2, 4, 9, 8), constants), (2, 4, 9, 8))


@given(
    st.sampled_from([{}, {"output_padding": [1, 0]}, {"output_shape": [17, 16]}, {"output_shape": [18, 15]}]),
    st.sampled_from(["NOTSET", "SAME_UPPER"]),
)
def test_transposed_convolutions_of_a_given_size_are_onnx_runtimes(size, auto_pad):
    weight = np.random.default_rng(1).normal(0, 1, (4, 3, 3, 3)).astype(np.float32)
    node = helper.make_node("ConvTranspose", ["x", "w"], ["y"], strides=[2, 2], auto_pad=auto_pad, **size)
    agrees(model_of_one([node], (1, 4, 9, 8), {"w": weight}), (1, 4, 9, 8))


@given(st.sampled_from(["MaxPool", "AveragePool"]), pairs, pairs, pads, st.booleans(), st.booleans())
def test_pooling_is_onnx_runtimes(kind, kernel, strides, padding, ceil, include):
    if "pads" in padding:
        padding = {"pads": [min(pad, size - 1) for pad, size in zip(padding["pads"], kernel * 2)]}
    attributes = {"kernel_shape": kernel, "strides": strides, **padding}
    if "pads" in padding:
        attributes["ceil_mode"] = int(ceil)
    if kind == "AveragePool":
        attributes["count_include_pad"] = int(include)
    node = helper.make_node(kind, ["x"], ["y"], **attributes)
    agrees(model_of_one([node], (1, 2, 9, 8)), (1, 2, 9, 8))


@pytest.mark.parametrize("opset", [11, 13, 17])
def test_batch_normalisation_is_of_inference_in_every_opset(opset):
    random = np.random.default_rng(0)
    constants = {name: random.uniform(1, 2, 3).astype(np.float32) for name in ("scale", "bias", "mean", "var")}
    node = helper.make_node("BatchNormalization", ["x", *constants], ["y"], momentum=0.9)
    agrees(model_of_one([node], (1, 3, 4, 4), constants, opset), (1, 3, 4, 4))


def test_casts_and_constants_are_doubles_and_integers_stay():
    nodes = [
        helper.make_node("Cast", ["x"], ["half"], to=TensorProto.FLOAT16),
        helper.make_node("Cast", ["half"], ["back"], to=FLOAT),
        helper.make_node("Constant", [], ["third"], value=numpy_helper.from_array(np.float32([1 / 3]))),
        helper.make_node("Mul", ["back", "third"], ["y"]),
    ]
    x = np.float32([[1.0001, 3]])
    found = DoubleReference(model_of_one(nodes, (1, 2)))({"x": x})["y"]
    assert np.array_equal(found, x.astype(np.float64) * np.float64(np.float32(1 / 3)))
    index = model_of_one([helper.make_node("ArgMax", ["x"], ["y"], axis=1)], (1, 2), out=TensorProto.INT64)
    assert DoubleReference(index)({"x": x})["y"].dtype == np.int64


@pytest.mark.parametrize("axis, picked", [(-1, (2, 3)), (0, (4, 3)), (1, (1, 2))])
def test_elements_are_gathered_as_by_onnx_runtime(axis, picked):
    indices = np.random.default_rng(1).integers(-2, 2, picked)
    nodes = [
        helper.make_node("Constant", [], ["indices"], value=numpy_helper.from_array(indices)),
        helper.make_node("GatherElements", ["x", "indices"], ["y"], axis=axis),
    ]
    agrees(model_of_one(nodes, (2, 3)), (2, 3))


def test_zeros_made_of_integers_are_doubles():
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("ConstantOfShape", ["shape"], ["zeros"]),
        helper.make_node("Add", ["x", "zeros"], ["y"]),
    ]
    agrees(model_of_one(nodes, (2, 3)), (2, 3))


def test_a_rounded_evaluation_is_within_rounding_of_the_plain_one():
    nodes = [helper.make_node("Exp", ["x"], ["e"]), helper.make_node("Sqrt", ["e"], ["y"])]
    model, x = model_of_one(nodes, (1, 64)), np.random.default_rng(0).normal(0, 1, (1, 64)).astype(np.float32)
    plain, rounded = DoubleReference(model)({"x": x})["y"], DoubleReference(model, rounded=True)({"x": x})["y"]
    assert 0 < np.abs(rounded / plain - 1).max() < 2**-23


def test_an_operator_that_is_not_evaluated_leaves_onnx_runtime_the_truth(monkeypatch):
    class Lacking(DoubleReference):
        def __call__(self, inputs):
            raise NoDouble("Erf: not there")

    monkeypatch.setattr(cases_module, "DoubleReference", Lacking)
    model = model_of_one([helper.make_node("Relu", ["x"], ["y"])], (1, 4))
    found = choose_cases(model, 0, 2, 1e-4)
    assert [(case.double, case.no_double) for case in found] == [(None, "Erf: not there")] * 2
    assert compare([case.expected for case in found], found, 1e-4).library_to_double is None


def test_doubles_that_rounding_does_not_explain_are_not_believed(monkeypatch):
    """Keep an error of the evaluation itself from raising the bound."""

    class Wrong(DoubleReference):
        def __call__(self, inputs):
            return {name: value * 1.01 for name, value in super().__call__(inputs).items()}

    monkeypatch.setattr(cases_module, "DoubleReference", Wrong)
    (case,) = choose_cases(model_of_one([helper.make_node("Relu", ["x"], ["y"])], (1, 64)), 0, 1, 1e-4)
    assert case.double is None and "rounding explains" in case.no_double


def test_a_large_distance_that_rounding_explains_is_believed():
    """Compute (x + 1e4) − 1e4: ONNX Runtime loses all but 10 bits, and so may a library."""
    constants = {"big": np.float32([1e4])}
    nodes = [helper.make_node("Add", ["x", "big"], ["s"]), helper.make_node("Sub", ["s", "big"], ["y"])]
    model = model_of_one(nodes, (1, 64), constants)
    (case,) = choose_cases(model, 0, 1, 1e-4)
    assert case.double is not None
    found = compare([case.expected], [case], 1e-6)
    assert found.onnxruntime_to_double == found.library_to_double > 1e-5


@pytest.mark.parametrize("first", [0, 9000])
def test_a_softmax_over_18000_classes_summed_in_order_passes_at_the_second_look(first):
    """The largest class is the first, or in the middle; a library's one sum of floats loses each small term's end."""
    model = model_of_one([helper.make_node("Softmax", ["x"], ["y"], axis=-1)], (2, 18_000))
    x = np.random.default_rng(0).normal(0, 1, (2, 18_000)).astype(np.float32)
    x[:, first] = 12
    (case,) = add_doubles(model, [Case({"x": x}, Reference(model)({"x": x}), Reference(model)({"x": x}))], 1e-5)
    powers = np.exp(x - x.max(axis=1, keepdims=True))
    result = {"y": powers / np.cumsum(powers, axis=1, dtype=np.float32)[:, -1:]}
    looked = add_plain_sums(model, [case])
    compare([result], looked, 1e-6)
    dropped = {"y": powers / (powers.sum(axis=1, keepdims=True) - powers[:, :-3].max(axis=1, keepdims=True))}
    with pytest.raises(NumericError):
        compare([dropped], looked, 1e-4)


def test_plain_sums_are_near_the_doubles():
    random = np.random.default_rng(0)
    constants = {
        "w": random.normal(0, 1, (6, 2, 3, 3)).astype(np.float32),
        "m": random.normal(0, 1, (4, 5)).astype(np.float32),
    }
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], group=2, pads=[1, 0, 1, 0]),
        helper.make_node("ReduceMean", ["c"], ["r"], axes=[1, -2], keepdims=0),
        helper.make_node("MatMul", ["r", "m"], ["p"]),
        helper.make_node("Softmax", ["p"], ["y"]),
    ]
    model, x = model_of_one(nodes, (1, 4, 7, 6), constants), random.normal(0, 1, (1, 4, 7, 6)).astype(np.float32)
    plain, double = DoubleReference(model, rounded=True)({"x": x})["y"], DoubleReference(model)({"x": x})["y"]
    assert 0 < np.abs(plain - double).max() < 1e-6


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_recurrent_layers_have_doubles(tmp_path, direction, dtype):
    random, count = np.random.default_rng(0), 2 if direction == "bidirectional" else 1
    weights = {name: random.normal(0, 1, (count, 12, extent)).astype(dtype) for name, extent in (("w", 5), ("r", 4))}
    node, kind = (
        helper.make_node("GRU", ["x", "w", "r"], ["y"], hidden_size=4, direction=direction),
        helper.np_dtype_to_tensor_dtype(np.dtype(dtype)),
    )
    model = model_of([node], {"x": [7, 2, 5]}, ["y"], weights, dtypes={"x": kind, "y": kind})
    (case,) = choose_cases(import_model(save(model, tmp_path)), 0, 1, 1e-4, model)
    assert case.double is not None, case.no_double
    np.testing.assert_allclose(case.double["y"], case.expected["y"], atol=2e-6 if dtype == np.float32 else 1e-3)


def test_cases_evaluated_at_once_are_those_evaluated_one_by_one():
    rng = np.random.default_rng(0)
    weights = {"w": rng.normal(0, 1, (8, 4, 3, 3)).astype(np.float32)}
    reference = DoubleReference(model_of_one([helper.make_node("Conv", ["x", "w"], ["y"])], (1, 4, 9, 9), weights))
    inputs = [{"x": rng.normal(0, 1, (1, 4, 9, 9)).astype(np.float32)} for _ in range(3)]
    for found, each in zip(evaluate_cases(reference, inputs), inputs, strict=True):
        np.testing.assert_allclose(found["y"], reference(each)["y"], rtol=1e-12, atol=1e-12)
    with pytest.raises(NoDouble):
        evaluate_cases(reference, [{}])


def test_weights_are_doubles_one_layer_at_a_time():
    width, count = 256, 16
    weights = {f"w{place}": np.full((width, width), 1 / width, np.float32) for place in range(count)}
    nodes = [helper.make_node("MatMul", [f"v{place}", f"w{place}"], [f"v{place + 1}"]) for place in range(count)]
    reference = DoubleReference(model_of(nodes, {"v0": [1, width]}, [f"v{count}"], weights))
    tracemalloc.start()
    (found,) = reference({"v0": np.ones((1, width), np.float32)}).values()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    np.testing.assert_allclose(found, np.ones((1, width)), rtol=1e-6)
    assert peak < 4 * width * width * 8  # of 16 layers


def test_values_are_kept_for_bodies_and_outputs():
    value = helper.make_tensor_value_info("b", FLOAT, [2])
    add = helper.make_graph([helper.make_node("Add", ["n", "w"], ["b"])], "add", [], [value])
    nodes = [
        helper.make_node("Neg", ["x"], ["n"]),
        helper.make_node("Mul", ["n", "w"], ["m"]),  # the last reader but the body
        helper.make_node("If", ["no"], ["z"], then_branch=add, else_branch=add),
        helper.make_node("Mul", ["z", "m"], ["y"]),
    ]
    weights = {"w": np.array([2, 3], np.float32), "no": np.array(False), "c": np.array([5], np.float32)}
    found = DoubleReference(model_of(nodes, {"x": [2]}, ["y", "c"], weights))({"x": np.ones(2, np.float32)})
    np.testing.assert_array_equal(found["y"], [-2, -6])
    np.testing.assert_array_equal(found["c"], [5])
    assert found["y"].dtype == found["c"].dtype == np.float64


@given(st.integers(1, 6), st.integers(1, 5))
def test_local_responses_are_onnx_runtimes(size, channels):
    node = helper.make_node("LRN", ["x"], ["y"], size=size, alpha=0.3, beta=0.6, bias=1.5)
    agrees(model_of_one([node], (2, channels, 3, 2)), (2, channels, 3, 2))
