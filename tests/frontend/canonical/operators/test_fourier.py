"""Compare rewritten STFT and DFT with ONNX Runtime's."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from passfit.errors import ModelError
from passfit.frontend.canonicalise import import_model

from ....models import model_of, run, save
from ....profiles import examples

node = helper.make_node


def _same(nodes, shape, constants, folder: Path, opset: int = 17):
    model = model_of(nodes, {"x": shape}, ["y"], constants, opset=opset)
    imported = import_model(save(model, folder))
    assert not {"STFT", "DFT"} & {each.op_type for each in imported.graph.node}
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    (found,), (expected,) = run(imported, {"x": x}), run(model, {"x": x})
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


@settings(max_examples=examples(12), deadline=None)
@given(
    st.integers(1, 2), st.sampled_from([4, 5, 16]), st.integers(1, 7), st.integers(0, 9), st.sampled_from([1, 2]),
    st.booleans(), st.sampled_from([None, 0, 1]),
)  # fmt: skip
def test_short_time_transforms(tmp_path_factory, batch, length, step, more, parts, windowed, sides):
    onesided = {} if sides is None else {"onesided": 0 if parts == 2 else sides}
    if parts == 2:
        onesided = {"onesided": 0}
    constants = {"step": np.asarray(step), "length": np.asarray(length)}
    window = "window" if windowed else ""
    if windowed:
        constants["window"] = np.hanning(length).astype(np.float32)
    nodes = [node("STFT", ["x", "step", window, "length"], ["y"], **onesided)]
    _same(nodes, [batch, length + more, parts], constants, tmp_path_factory.mktemp("stft"))


def test_a_window_gives_the_length(tmp_path):
    """Compare with numpy: ONNX Runtime's own transform of 400 samples is 1e-3 off."""
    window = np.hanning(400).astype(np.float32)
    nodes = [node("STFT", ["x", "step", "window"], ["y"])]
    model = model_of(nodes, {"x": [1, 1600]}, ["y"], {"step": np.asarray(160), "window": window}, opset=17)
    x = np.random.default_rng(0).standard_normal((1, 1600)).astype(np.float32)
    (found,) = run(import_model(save(model, tmp_path)), {"x": x})
    frames = np.stack([x[0, start : start + 400] for start in range(0, 1201, 160)])
    expected = np.fft.rfft(frames.astype(np.float64) * window)
    np.testing.assert_allclose(found[0], np.stack([expected.real, expected.imag], -1), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("opset", [17, 20])
@pytest.mark.parametrize(
    "shape, axis, options",
    [
        ([2, 9, 1], 1, {}), ([2, 9, 1], 1, {"onesided": 1}), ([2, 8, 2], 1, {"inverse": 1}), ([3, 6, 5, 1], 1, {}),
        ([3, 6, 5, 2], 2, {}), ([3, 6, 5, 1], 2, {"onesided": 1}),
    ],
)  # fmt: skip
def test_transforms(tmp_path, opset, shape, axis, options):
    inputs, constants = ["x"], {}
    if opset >= 20:
        inputs, constants = ["x", "", "axis"], {"axis": np.asarray(axis)}
    else:
        options = options | {"axis": axis}
    _same([node("DFT", inputs, ["y"], **options)], shape, constants, tmp_path, opset)


@pytest.mark.parametrize("length", [4, 16])
def test_samples_are_cut_or_filled(tmp_path, length):
    _same([node("DFT", ["x", "n"], ["y"], axis=1)], [1, 9, 1], {"n": np.asarray(length)}, tmp_path)


@pytest.mark.parametrize("opset", [17, 20])
@pytest.mark.parametrize(
    ("shape", "axis", "length"), [([2, 5, 2], 1, None), ([2, 5, 2], 1, 6), ([1, 3, 9, 2], 2, 16), ([2, 5, 3, 2], 1, 8)]
)
def test_one_side_becomes_real_samples(tmp_path, opset, shape, axis, length):
    constants = {"axis": np.asarray(axis)} | ({} if length is None else {"n": np.asarray(length)})
    size = "" if length is None else "n"
    inputs, options = (["x", size, "axis"], {}) if opset >= 20 else (["x", size], {"axis": axis})
    _same([node("DFT", inputs, ["y"], inverse=1, onesided=1, **options)], shape, constants, tmp_path, opset)


@pytest.mark.parametrize("length", [7, 12])
def test_samples_that_one_side_does_not_give_are_refused(tmp_path, length):
    model = model_of(
        [node("DFT", ["x", "n"], ["y"], axis=1, inverse=1, onesided=1)],
        {"x": [2, 5, 2]},
        ["y"],
        {"n": np.asarray(length)},
        opset=17,
    )
    with pytest.raises(ModelError, match="DFT"):
        import_model(save(model, tmp_path))


def test_long_transforms_are_refused(tmp_path):
    model = model_of([node("DFT", ["x"], ["y"], axis=1)], {"x": [1, 20000, 1]}, ["y"], {}, opset=17)
    with pytest.raises(ModelError, match="DFT"):
        import_model(save(model, tmp_path))


def test_a_vector_of_floats_is_no_shape(tmp_path):
    """Add a line to a column of floats: ONNX's propagation of shapes took both for shapes."""
    constants = {
        "line": np.arange(7, dtype=np.float32),
        "column": np.arange(5, dtype=np.float32),
        "axis": np.asarray([-1]),
    }
    nodes = [
        node("Div", ["column", "line_0"], ["a"]), node("Unsqueeze", ["a", "axis"], ["b"]), node("Div", ["line", "line_0"], ["c"]),
        node("Add", ["b", "c"], ["d"]), node("Mul", ["d", "x"], ["y"]),
    ]  # fmt: skip
    model = model_of(nodes, {"x": [5, 7]}, ["y"], constants | {"line_0": np.asarray(3, np.float32)})
    imported = import_model(save(model, tmp_path))
    x = np.ones((5, 7), np.float32)
    np.testing.assert_allclose(run(imported, {"x": x})[0], run(model, {"x": x})[0], rtol=1e-6)
    assert imported.graph.input[0].type.tensor_type.elem_type == TensorProto.FLOAT
