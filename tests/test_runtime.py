"""A session answers as onnxruntime's does: names, types, shapes, outputs, for files, bytes and compiled libraries."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import passfit
import passfit.runtime
from passfit.backend.worker import shared_worker
from passfit.errors import ModelError
from passfit.targets.native import native_target

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(native_target() is None, reason="no target of the catalogue runs natively on this machine"),
]


@pytest.fixture(scope="module", autouse=True)
def _end_of_worker():
    yield
    shared_worker().end()


def network(batch: int | str = 1) -> onnx.ModelProto:
    """Return a product with a bias, of floats, and whether its sum is positive."""
    weights = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["product"]),
        helper.make_node("Add", ["product", "shift"], ["y"]),
        helper.make_node("Greater", ["y", "zero"], ["positive"]),
    ]
    value = helper.make_tensor_value_info
    given = [value("x", TensorProto.FLOAT, (batch, 4)), value("shift", TensorProto.FLOAT, (3,))]
    results = [value("y", TensorProto.FLOAT, (batch, 3)), value("positive", TensorProto.BOOL, (batch, 3))]
    constants = [numpy_helper.from_array(weights, "w"), numpy_helper.from_array(np.float32(0), "zero")]
    graph = helper.make_graph(nodes, "network", given, results, constants)
    model = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])
    model.metadata_props.append(onnx.StringStringEntryProto(key="classes", value="a,b,c"))
    return model


def feed(batch: int = 1) -> dict[str, np.ndarray]:
    random = np.random.default_rng(batch)
    return {"x": random.normal(size=(batch, 4)).astype(np.float32), "shift": np.ones(3, np.float32)}


def described(session: object) -> list[list[tuple]]:
    ports = session.get_inputs(), session.get_outputs()
    return [[(each.name, each.type, each.shape) for each in some] for some in ports]


@pytest.mark.parametrize("form", ["path", "text", "bytes"])
def test_a_file_runs_as_in_onnxruntime(tmp_path: Path, form: str):
    content = network("batch").SerializeToString()
    file = tmp_path / "network.onnx"
    file.write_bytes(content)
    source = {"path": file, "text": str(file), "bytes": content}[form]
    options = passfit.runtime.SessionOptions()
    options.intra_op_num_threads = 1
    options.graph_optimization_level = passfit.runtime.GraphOptimizationLevel.ORT_ENABLE_ALL
    ours = passfit.runtime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    theirs = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    assert described(ours) == described(theirs)
    assert ours.get_modelmeta().custom_metadata_map == theirs.get_modelmeta().custom_metadata_map
    for batch in (1, 5, 1):
        for names in (None, ["y"], ["positive", "y"]):
            found, expected = ours.run(names, feed(batch)), theirs.run(names, feed(batch))
            assert len(found) == len(expected)
            for one, other in zip(found, expected):
                assert one.dtype == other.dtype and np.allclose(one, other, rtol=1e-6, atol=1e-6)


def test_a_compiled_library_is_a_session_too(tmp_path: Path):
    onnx.save(network(), tmp_path / "network.onnx")
    passfit.compile(tmp_path / "network.onnx", native_target(), tmp_path / "out", evaluations=1)
    ours = passfit.runtime.InferenceSession(tmp_path / "out")
    theirs = onnxruntime.InferenceSession(network().SerializeToString())
    assert described(ours) == described(theirs)
    for one, other in zip(ours.run(None, feed()), theirs.run(None, feed())):
        assert np.allclose(one, other, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    "names, given, said",
    [
        (["z"], feed(), "The model has no output 'z'"),
        (None, {"x": feed()["x"]}, "The model misses shift"),
        (None, feed() | {"more": np.zeros(1)}, "The model has no input 'more'"),
        (None, feed() | {"x": np.zeros((1, 4))}, "The input 'x' is float64"),
    ],
)
def test_wrong_calls_are_refused_in_words(names: list[str] | None, given: dict, said: str):
    session = passfit.runtime.InferenceSession(network().SerializeToString())
    with pytest.raises(ModelError, match=said):
        session.run(names, given)


@pytest.mark.parametrize("source", [b"no model", "missing.onnx"])
def test_what_is_no_model_is_refused(source: str | bytes):
    with pytest.raises(ModelError):
        passfit.runtime.InferenceSession(source)


def test_settings_of_execution_are_accepted():
    ours = passfit.runtime
    assert ours.get_device() == "CPU" and ours.get_available_providers() == ["CPUExecutionProvider"]
    session = ours.InferenceSession(network().SerializeToString())
    session.set_providers(["CUDAExecutionProvider"])
    assert session.get_providers() == ["CPUExecutionProvider"]
    ours.set_default_logger_severity(3)


@pytest.mark.parametrize("value", [1.0, [1.0], np.ones(1, np.float32), np.ones((1, 5), np.float32), np.ones((2, 4))])
def test_an_open_shape_takes_no_other_rank_size_or_dtype(value: object):
    session = passfit.runtime.InferenceSession(network("batch").SerializeToString())
    with pytest.raises(ModelError, match=r"the model takes float32\[\?, 4\]"):
        session.run(None, feed() | {"x": value})


def test_a_list_takes_the_dtype_of_its_input():
    ours = passfit.runtime.InferenceSession(network().SerializeToString())
    theirs = onnxruntime.InferenceSession(network().SerializeToString())
    given = {name: value.tolist() for name, value in feed().items()}
    assert np.allclose(ours.run(["y"], given)[0], theirs.run(["y"], feed())[0], rtol=1e-6, atol=1e-6)


def test_threads_share_sessions():
    """Each session answers for itself, whoever asks at once."""
    sessions = [passfit.runtime.InferenceSession(network("batch").SerializeToString()) for _ in range(2)]
    expected = {batch: sessions[0].run(["y"], feed(batch))[0] for batch in (1, 2, 3)}

    def ask(number: int) -> bool:
        batch = 1 + number % 3
        return np.array_equal(sessions[number % 2].run(["y"], feed(batch))[0], expected[batch])

    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(ask, range(60)))


def test_data_are_not_taken_for_constants_where_a_model_is_refused():
    nodes = [
        helper.make_node("Compress", ["x", "flags"], ["rows"], axis=0),
        helper.make_node("Einsum", ["rows"], ["y"], equation="ij->"),
    ]
    value = helper.make_tensor_value_info
    given = [value("x", TensorProto.FLOAT, (4, 2)), value("flags", TensorProto.BOOL, (4,))]
    graph = helper.make_graph(nodes, "mean", given, [value("y", TensorProto.FLOAT, ())])
    model = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])
    session = passfit.runtime.InferenceSession(model.SerializeToString())
    for flags in (np.ones(4, bool), np.eye(4, dtype=bool)[0]):
        with pytest.raises(passfit.PassfitError, match="no rule says how it works on a bound"):
            session.run(None, {"x": np.ones((4, 2), np.float32), "flags": flags})
