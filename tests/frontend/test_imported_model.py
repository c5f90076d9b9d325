"""Import of models for every later step, and of canonical files again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from onnx import NodeProto, TensorProto, helper

from passfit.codegen import c_identifier
from passfit.errors import ConfigError, ModelError
from passfit.frontend import canonicalise, imported_model
from passfit.frontend.given_model import given_model
from passfit.frontend.imported_model import import_onnx, load
from passfit.frontend.source.import_options import ImportOptions
from passfit.support.result_store import ResultStore

from ..models import model_of, save


@pytest.fixture
def given(save_tiny_cnn: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a model as exported, with no import in the store."""
    store = ResultStore(tmp_path / "store.jsonl")
    monkeypatch.setattr(imported_model, "shared_store", lambda: store)
    return save_tiny_cnn(tmp_path / "given.onnx")


def _canonical(given: Path) -> Path:
    file = given.with_name("canonical.onnx")
    file.write_bytes(import_onnx(given)[0].SerializeToString(deterministic=True))
    return file


def test_a_canonical_file_is_imported_once(given: Path, monkeypatch: pytest.MonkeyPatch):
    canonical, (_, start) = _canonical(given), import_onnx(given)
    first = import_onnx(canonical)
    monkeypatch.setattr(canonicalise, "import_read", lambda *_: 1 / 0)
    assert first == import_onnx(canonical)
    assert first[0].SerializeToString(deterministic=True) == canonical.read_bytes() and first[1] == start


def _layers() -> dict[str, tuple[list[NodeProto], list[int], dict[str, np.ndarray], int]]:
    """Return nodes from x to y whose canonical form an import could take for one to rewrite: with shapes, constants and set."""
    weights = {name: np.ones(shape, np.float32) for name, shape in (("w", (1, 5, 3)), ("r", (1, 5, 5)))}
    sizes = {"sizes": np.array([1, 2, 8, 8])}
    halved = {"scale": np.float32(0.5), "zero": np.int8(0)}
    return {
        "a few steps": ([helper.make_node("RNN", ["x", "w", "r"], ["y"], hidden_size=5)], [4, 2, 3], weights, 17),
        "the largest": ([helper.make_node("ReduceMax", ["x"], ["y"], axes=[1])], [2, 3], {}, 17),
        "the largest, squeezed": ([helper.make_node("ReduceMax", ["x"], ["y"], axes=[1], keepdims=0)], [2, 3], {}, 17),
        "the logarithm of a sum": ([helper.make_node("ReduceLogSumExp", ["x"], ["y"], axes=[1])], [2, 3], {}, 17),
        "sizes": ([helper.make_node("Resize", ["x", "", "", "sizes"], ["y"])], [1, 2, 4, 4], sizes, 17),
        "a set after the newest": ([helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["y"])], [2, 3], halved, 27),
    }  # fmt: skip


@pytest.mark.parametrize("name", _layers())
def test_a_canonical_file_is_its_own_canonical_form(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    nodes, shape, constants, opset = _layers()[name]
    model = model_of(nodes, {"x": shape}, ["y"], constants, opset=opset)
    for value in model.graph.output if "zero" in constants else ():
        value.type.tensor_type.elem_type = TensorProto.INT8
    monkeypatch.setattr(imported_model, "shared_store", lambda: ResultStore(tmp_path / "store.jsonl"))
    canonical = _canonical(save(model, tmp_path))
    assert import_onnx(canonical)[0].SerializeToString(deterministic=True) == canonical.read_bytes()


def test_any_other_file_is_imported_each_time(given: Path, monkeypatch: pytest.MonkeyPatch):
    assert import_onnx(given) == import_onnx(given)
    monkeypatch.setattr(canonicalise, "import_read", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        import_onnx(given)


def test_a_canonical_file_with_a_value_to_fix_is_imported(given: Path):
    canonical = _canonical(given)
    import_onnx(canonical)
    with pytest.raises(ModelError, match="nosuch"):
        import_onnx(canonical, ImportOptions({"nosuch": [1]}))


@pytest.mark.parametrize("name", ["", "../x", "a\\b", "..", "_", "a\n", "\udcff", "/"])
def test_a_name_that_no_file_can_have_is_refused_first(tmp_path: Path, name: str):
    with pytest.raises(ConfigError, match="is not the name of a model.*Give letters and digits"):
        load(tmp_path / "gone.onnx", name)


@pytest.mark.parametrize("name", ["x", "größe 2", "model-1.2", "模型", "1"])
def test_other_names_are_mapped_to_c(tmp_path: Path, name: str):
    with pytest.raises(ModelError, match="gone.onnx"):
        load(tmp_path / "gone.onnx", name)
    assert c_identifier(name).isidentifier() and c_identifier(name).isascii()


@pytest.mark.parametrize("large", [False, True])
def test_a_large_model_as_given_is_held_by_nobody(given: Path, monkeypatch: pytest.MonkeyPatch, large: bool):
    monkeypatch.setattr(imported_model, "LARGE", 1 if large else 1 << 40)
    imported = load(given)
    assert imported.given == given_model(given) and (imported.given is not imported.given) is large
    assert load(_canonical(given)).given is None
    assert load(_canonical(given), given=given).given == given_model(given)
