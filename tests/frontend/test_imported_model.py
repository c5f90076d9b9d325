"""Import of models for every later step, and of canonical files again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from passfit.errors import ModelError
from passfit.frontend import canonicalise, imported_model
from passfit.frontend.imported_model import import_onnx
from passfit.support.result_store import ResultStore


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
    monkeypatch.setattr(canonicalise, "import_model", lambda *_: 1 / 0)
    assert first == import_onnx(canonical)
    assert first[0].SerializeToString(deterministic=True) == canonical.read_bytes() and first[1] == start


def test_any_other_file_is_imported_each_time(given: Path, monkeypatch: pytest.MonkeyPatch):
    assert import_onnx(given) == import_onnx(given)
    monkeypatch.setattr(canonicalise, "import_model", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        import_onnx(given)


def test_a_canonical_file_with_a_value_to_fix_is_imported(given: Path):
    canonical = _canonical(given)
    import_onnx(canonical)
    with pytest.raises(ModelError, match="nosuch"):
        import_onnx(canonical, {"nosuch": [1]})
