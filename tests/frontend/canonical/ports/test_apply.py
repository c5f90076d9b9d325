"""Check that a file with the device's ports computes what the file computes behind the conversion, in every form."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from passfit.errors import ConfigError, ModelError
from passfit.frontend.canonical.ports.apply import file_form_model, port_forms
from passfit.frontend.canonicalise import import_model
from passfit.frontend.given_model import given_model, write_given
from passfit.frontend.source.import_options import ImportOptions

from ....models import model_of, run, save
from ....profiles import examples

node = helper.make_node
SLOW = settings(max_examples=examples(30), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def picture_model(opset: int = 17, channels: int = 3) -> onnx.ModelProto:
    random = np.random.default_rng(0)
    weight = random.standard_normal((4, channels, 3, 3)).astype(np.float32)
    nodes = [
        node("Conv", ["x", "w"], ["c"], pads=[1] * 4),
        node("GlobalAveragePool", ["c"], ["g"]),
        node("Flatten", ["g"], ["f"]),
        node("Softmax", ["f"], ["y"], axis=1),
    ]
    return model_of(nodes, {"x": [1, channels, 5, 6]}, {"y": [1, 4]}, {"w": weight}, opset=opset)


def both(model: onnx.ModelProto, folder: Path, **options) -> tuple[onnx.ModelProto, onnx.ModelProto]:
    """Return the file behind its ports, and the canonical model."""
    path = save(model, folder)
    reference = given_model(path, ImportOptions(**options))
    assert reference is not None
    return reference, import_model(path, ImportOptions(**options))


def draws(dtype: str, shape: list[int], seed: int = 0) -> np.ndarray:
    random = np.random.default_rng(seed)
    if np.dtype(dtype).kind == "f":
        return random.standard_normal(shape).astype(dtype)
    limits = np.iinfo(dtype)
    return random.integers(limits.min, limits.max, shape, dtype, endpoint=True)


@SLOW
@given(
    st.sampled_from([6, 7, 9, 10, 13, 17, 21]),
    st.sampled_from(["uint8", "int8", "int16", "float16", "float32"]),
    st.booleans(),
    st.booleans(),
    st.sampled_from([(), (3.5,), (123.7, 116.3, 103.5)]),
    st.sampled_from([(), (58.4,), (58.4, 57.1, 57.4)]),
)
def test_the_file_computes_behind_the_conversion(
    tmp_path: Path, opset: int, dtype: str, last: bool, bgr: bool, mean: tuple, std: tuple
) -> None:
    form: dict = {"dtype": dtype, "mean": list(mean), "std": list(std)}
    form = {key: value for key, value in form.items() if value}
    form |= ({"layout": "nhwc"} if last else {}) | ({"channels": "bgr"} if bgr else {})
    model = picture_model(opset)
    reference, canonical = both(model, tmp_path, inputs={"x": form})
    raw = draws(dtype, [1, 5, 6, 3] if last else [1, 3, 5, 6])
    pixels = raw.astype(np.float32).transpose(0, 3, 1, 2) if last else raw.astype(np.float32)
    pixels = pixels[:, ::-1] if bgr else pixels
    spread = [np.asarray(each or neutral, np.float32).reshape(1, -1, 1, 1) for each, neutral in ((mean, 0), (std, 1))]
    (expected,) = run(model, {"x": (pixels - spread[0]) / spread[1]})
    for each in (reference, canonical) if opset > 6 else (canonical,):  # ONNX Runtime has no Mul of set 6
        assert each.graph.input[0].name == "x"
        np.testing.assert_allclose(run(each, {"x": raw})[0], expected, rtol=1e-3, atol=1e-5)
    conversion = file_form_model(reference, "x")
    if conversion is not None and opset > 6:
        (converted,) = run(conversion, {"x": raw})
        np.testing.assert_array_equal(run(model, {"x": converted})[0], run(reference, {"x": raw})[0])


def quantised(shared: bool = True, channels_last: bool = False, float_reader: bool = False) -> onnx.ModelProto:
    """Return a QDQ network; its input has two equal QuantizeLinear readers, or two of different scales."""
    random = np.random.default_rng(1)
    constants = {
        "s": np.float32(0.05), "z": np.int8(3), "s2": np.float32(0.05 if shared else 0.06), "ws": np.float32(0.02), "wz": np.int8(0),
        "w": random.integers(-90, 90, (4, 3, 3, 3), np.int8), "ys": np.float32(0.2), "yz": np.int8(-5),
    }  # fmt: skip
    nodes = [node("Transpose", ["x"], ["t"], perm=[0, 3, 1, 2])] if channels_last else [node("Identity", ["x"], ["t"])]
    nodes += [
        node("QuantizeLinear", ["t", "s", "z"], ["q"]), node("DequantizeLinear", ["q", "s", "z"], ["d"]),
        node("QuantizeLinear", ["t", "s2", "z"], ["q2"]), node("DequantizeLinear", ["q2", "s2", "z"], ["d2"]),
        node("DequantizeLinear", ["w", "ws", "wz"], ["wd"]),
        node("Conv", ["d", "wd"], ["c"]), node("Conv", ["t" if float_reader else "d2", "wd"], ["c2"]), node("Add", ["c", "c2"], ["a"]),
        node("QuantizeLinear", ["a", "ys", "yz"], ["aq"]), node("DequantizeLinear", ["aq", "ys", "yz"], ["ad"]),
        node("Flatten", ["ad"], ["y"]),
    ]  # fmt: skip
    shape = [1, 6, 6, 3] if channels_last else [1, 3, 6, 6]
    return model_of(nodes, {"x": shape}, {"y": [1, 64]}, constants)


@pytest.mark.parametrize("channels_last", [False, True])
def test_integer_ports_drop_the_outer_conversions_exactly(tmp_path: Path, channels_last: bool) -> None:
    model = quantised(channels_last=channels_last)
    reference, canonical = both(model, tmp_path, io="int8")
    raw = draws("int8", [1, 6, 6, 3] if channels_last else [1, 3, 6, 6])
    floats = ((raw.astype(np.float32) - 3) * np.float32(0.05)).astype(np.float32)
    (expected,) = run(model, {"x": floats})
    as_integers = np.rint(expected / np.float32(0.2)) - 5
    for each in (reference, canonical):
        (found,) = run(each, {"x": raw})
        assert found.dtype == np.int8
        np.testing.assert_array_equal(found, as_integers)
    assert not {"QuantizeLinear"} & {each.op_type for each in reference.graph.node if each.input[0] == "x"}
    np.testing.assert_array_equal(run(file_form_model(reference, "x"), {"x": raw})[0], floats)
    assert port_forms(reference) == port_forms(canonical)


@pytest.mark.parametrize("form", [{"shared": False}, {"float_reader": True}])
def test_an_input_that_is_no_single_quantisation_stays_a_float(tmp_path: Path, caplog, form: dict) -> None:
    with caplog.at_level(logging.WARNING, "passfit"):
        reference, _ = both(quantised(**form), tmp_path, io="int8")
    assert reference.graph.input[0].type.tensor_type.elem_type == TensorProto.FLOAT
    assert reference.graph.output[0].type.tensor_type.elem_type == TensorProto.INT8
    assert "the input 'x' stays a float" in caplog.text


@pytest.mark.parametrize(("opset", "integer"), [(11, False), (12, True)])
def test_a_pooling_in_front_pools_bytes_where_it_can(tmp_path: Path, opset: int, integer: bool) -> None:
    constants = {"s": np.float32(0.05), "z": np.int8(3)}
    nodes = [
        node("MaxPool", ["x"], ["m"], kernel_shape=[2, 2], pads=[1, 1, 0, 0]), node("QuantizeLinear", ["m", "s", "z"], ["q"]),
        node("DequantizeLinear", ["q", "s", "z"], ["d"]), node("Relu", ["d"], ["r"]), node("QuantizeLinear", ["r", "s", "z"], ["rq"]),
        node("DequantizeLinear", ["rq", "s", "z"], ["y"]),
    ]  # fmt: skip
    model = model_of(nodes, {"x": [1, 2, 4, 4]}, {"y": [1, 2, 4, 4]}, constants, opset=opset)
    reference, _ = both(model, tmp_path, io="int8")
    assert (reference.graph.input[0].type.tensor_type.elem_type == TensorProto.INT8) == integer
    raw = draws("int8", [1, 2, 4, 4])
    floats = (raw.astype(np.float32) - 3) * np.float32(0.05)
    (expected,) = run(model, {"x": floats})
    (found,) = run(reference, {"x": raw if integer else floats})
    np.testing.assert_array_equal(found, np.rint(expected / np.float32(0.05)) + 3)


def test_a_form_of_its_own_goes_before_io(tmp_path: Path) -> None:
    model = quantised()
    reference, _ = both(model, tmp_path, io="int8", inputs={"x": "uint8,nhwc,std=32"})
    raw = draws("uint8", [1, 6, 6, 3])
    (expected,) = run(model, {"x": (raw.transpose(0, 3, 1, 2) / np.float32(32)).astype(np.float32)})
    np.testing.assert_array_equal(run(reference, {"x": raw})[0], np.rint(expected / np.float32(0.2)) - 5)
    turned, _ = both(model, tmp_path, io="int8", inputs={"x": "nhwc,bgr"})
    raw = draws("int8", [1, 6, 6, 3])
    floats = ((raw.transpose(0, 3, 1, 2)[:, ::-1].astype(np.float32) - 3) * np.float32(0.05)).astype(np.float32)
    (expected,) = run(model, {"x": floats})
    np.testing.assert_array_equal(run(turned, {"x": raw})[0], np.rint(expected / np.float32(0.2)) - 5)
    np.testing.assert_array_equal(run(file_form_model(turned, "x"), {"x": raw})[0], floats)


@pytest.mark.parametrize(
    "form, expect",
    [
        ("argmax", lambda y: y.argmax(1)), ("top=2", lambda y: np.argsort(-y, 1, kind="stable")[:, :2]),
        ("logits,argmax", lambda y: y.argmax(1)), ("float16", lambda y: y.astype(np.float16)),
        ("int8,scale=0.01,zero-point=-20", lambda y: np.rint(y / np.float32(0.01)) - 20),
    ],
)  # fmt: skip
def test_outputs_take_their_form(tmp_path: Path, form: str, expect) -> None:
    model, values = picture_model(), {"x": draws("float32", [1, 3, 5, 6])}
    reference, canonical = both(model, tmp_path, outputs={"y": form})
    (expected,) = run(model, values)
    for each in (reference, canonical):
        (found,) = run(each, values)
        assert found.dtype == (np.float16 if form == "float16" else np.int8 if "int8" in form else np.int32)
        np.testing.assert_array_equal(found, expect(expected))
    assert [each.name for each in reference.graph.output] == ["y"]


def test_logits_leave_out_the_last_softmax(tmp_path: Path) -> None:
    model, values = picture_model(), {"x": draws("float32", [1, 3, 5, 6])}
    reference, canonical = both(model, tmp_path, outputs={"y": "logits"})
    (expected,) = run(model, values)
    for each in (reference, canonical):
        (found,) = run(each, values)
        np.testing.assert_allclose(np.exp(found) / np.exp(found).sum(), expected, rtol=1e-5)
        assert "Softmax" not in {node.op_type for node in each.graph.node}


def test_logits_of_a_quantised_softmax_are_those_before_it(tmp_path: Path) -> None:
    constants = {"s": np.float32(0.1), "z": np.int8(0), "ps": np.float32(1 / 256), "pz": np.int8(-128)}
    nodes = [
        node("QuantizeLinear", ["x", "s", "z"], ["q"]), node("DequantizeLinear", ["q", "s", "z"], ["d"]),
        node("Softmax", ["d"], ["p"]), node("QuantizeLinear", ["p", "ps", "pz"], ["pq"]), node("DequantizeLinear", ["pq", "ps", "pz"], ["y"]),
    ]  # fmt: skip
    model = model_of(nodes, {"x": [1, 8]}, {"y": [1, 8]}, constants)
    reference, _ = both(model, tmp_path, outputs={"y": "logits"}, io="int8")
    raw = draws("int8", [1, 8])
    np.testing.assert_array_equal(run(reference, {"x": raw})[0], raw)


def test_an_output_may_have_channels_last(tmp_path: Path) -> None:
    model = model_of([node("Relu", ["x"], ["y"])], {"x": [1, 3, 4, 5]}, ["y"])
    values = {"x": draws("float32", [1, 3, 4, 5])}
    for each in both(model, tmp_path, outputs={"y": "nhwc,uint8,scale=0.01"}):
        expected = np.clip(np.rint(np.maximum(values["x"], 0) / np.float32(0.01)), 0, 255).transpose(0, 2, 3, 1)
        np.testing.assert_array_equal(run(each, values)[0], expected)


@pytest.mark.parametrize(
    "options, says",
    [
        ({"inputs": {"x": "bgr"}}, "1 channel, and bgr"),
        ({"inputs": {"X": "uint8"}}, "no input 'X'; it has x."),
        ({"inputs": {"x": "uint8,mean=1:2"}}, "2 numbers of mean"),
        ({"inputs": {"x": "mean=1,scale=2"}}, "mean or std, and scale"),
        ({"outputs": {"y": "int8"}}, "not int8 in the file: the Softmax node"),
        ({"outputs": {"y": "argmax,top=2"}}, "argmax and top"),
        ({"outputs": {"y": "top=9"}}, "no 9 largest"),
        ({"outputs": {"y": "nhwc"}}, "nhwc is a form of four"),
        ({"outputs": {"y": "argmax,axis=2"}}, "no axis 2"),
        ({"outputs": {"y": "int32,scale=1"}}, "does not quantise to int32"),
        ({"io": "int8"}, "No input or output of the model is quantised"),
        ({"outputs": ["y=argmx"]}, "'argmx' is not a form of it"),
    ],
)
def test_wrong_forms_are_refused_with_the_next_step(tmp_path: Path, options: dict, says: str) -> None:
    with pytest.raises(ModelError) as refused:
        both(picture_model(channels=1), tmp_path, **options)
    assert says in str(refused.value) and refused.value.hint


def test_a_layout_needs_four_axes_and_integers_no_numbers(tmp_path: Path) -> None:
    ids = model_of(
        [node("Cast", ["x"], ["y"], to=TensorProto.FLOAT)], {"x": [1, 2, 3]}, ["y"], dtypes={"x": TensorProto.INT64}
    )
    for form, says in (("nhwc", "nhwc is a form of four"), ("int32,std=2", "numbers are computed for floats alone")):
        with pytest.raises(ModelError, match=says):
            both(ids, tmp_path, inputs={"x": form})
    reference, _ = both(ids, tmp_path, inputs={"x": "int32"})
    assert run(reference, {"x": np.full((1, 2, 3), 7, np.int32)})[0].max() == 7


def test_forms_that_are_none_are_refused_before_the_file_is_read() -> None:
    for options in (
        {"inputs": {"x": "uint9"}},
        {"inputs": {"x": {"meen": 3}}},
        {"inputs": {"x": "std=0"}},
        {"inputs": {"x": {"mean": float("nan")}}},
        {"outputs": {"y": "top=0"}},
        {"io": "int4"},
    ):
        with pytest.raises(ConfigError):
            ImportOptions(**options)


def test_a_file_with_channels_last_keeps_them(tmp_path: Path) -> None:
    model = model_of([node("Relu", ["x"], ["y"])], {"x": [1, 6, 5, 3]}, ["y"])
    reference, _ = both(model, tmp_path, inputs={"x": "uint8,nhwc,bgr,mean=1:2:3"})
    raw = draws("uint8", [1, 6, 5, 3])
    expected = np.maximum(raw[..., ::-1].astype(np.float32) - np.float32([1, 2, 3]), 0)
    np.testing.assert_array_equal(run(reference, {"x": raw})[0], expected)


def test_bytes_of_a_file_without_ports_stay(tmp_path: Path) -> None:
    path = save(picture_model(), tmp_path)
    for place, options in enumerate(({"x": {}}, {"x": "uint8"}, {})):
        write_given(tmp_path / str(place), path, ImportOptions(inputs=options))
    unchanged, changed, plain = ((tmp_path / str(place)).read_bytes() for place in range(3))
    assert unchanged == path.read_bytes() != changed
    assert b"passfit.ports" not in plain


def test_readers_inside_of_branches_get_the_file_s_form(tmp_path: Path) -> None:
    branch = [
        helper.make_graph(
            [node("Neg", ["x"], [name])], name, [], [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2])]
        )
        for name in "ab"
    ]
    nodes = [
        node("ReduceSum", ["x"], ["s"], keepdims=0),
        node("Greater", ["s", "o"], ["p"]),
        node("If", ["p"], ["y"], then_branch=branch[0], else_branch=branch[1]),
    ]
    model = model_of(nodes, {"x": [2]}, ["y"], {"o": np.float32(0)})
    reference = given_model(save(model, tmp_path), ImportOptions(inputs={"x": "int16,std=4"}))
    assert reference is not None
    np.testing.assert_array_equal(run(reference, {"x": np.int16([4, 6])})[0], [-1, -1.5])
    assert numpy_helper.to_array(reference.graph.initializer[-1]) == 0.25
