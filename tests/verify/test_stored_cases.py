"""Stored cases are the chosen ones, made once; files that are damaged, or off, cost time alone."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from onnx import helper

from passfit.errors import ModelError
from passfit.support import result_store
from passfit.verify import stored_cases as stored
from passfit.verify.cases import choose_cases
from passfit.verify.compare import Case

from ..models import model_of


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give each test a store of its own."""
    monkeypatch.setattr(result_store, "_root", lambda: tmp_path / "store")
    return tmp_path / "store" / "cases"


def squared(factor: float = 2.0):
    nodes = [helper.make_node("Mul", ["x", "factor"], ["some"]), helper.make_node("Mul", ["some", "x"], ["file"])]
    return model_of(nodes, {"x": [1, 8]}, {"file": [1, 8]}, {"factor": np.float32(factor)})


def equal(one: Case, other: Case) -> bool:
    tensors = [(getattr(one, each), getattr(other, each)) for each in ("inputs", "expected", "optimized", "double")]
    return (one.no_double, one.units) == (other.no_double, other.units) and all(
        list(mine) == list(theirs)
        and all(mine[name].dtype == theirs[name].dtype and np.array_equal(mine[name], theirs[name]) for name in mine)
        for mine, theirs in tensors
    )


def failing(*_: object) -> list[Case]:
    raise AssertionError("chosen again")


def test_cases_are_chosen_once_and_stay_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = choose_cases(squared(), 0, 3, 1e-4)
    first = stored.stored_cases(squared(), 0, 3, 1e-4)
    monkeypatch.setattr(stored, "choose_cases", failing)
    for found in (first, stored.stored_cases(squared(), 0, 3, 1e-4)):
        assert all(equal(one, other) for one, other in zip(expected, found, strict=True))


def test_another_model_or_setting_has_cases_of_its_own(folder: Path) -> None:
    for arguments in (
        (squared(), 0, 3, 1e-4),
        (squared(3.0), 0, 3, 1e-4),
        (squared(), 1, 3, 1e-4),
        (squared(), 0, 2, 1e-4),
        (squared(), 0, 3, 1e-5),
    ):
        found, chosen = stored.stored_cases(*arguments), choose_cases(*arguments)
        assert all(equal(one, other) for one, other in zip(found, chosen, strict=True))
    assert len(list(folder.iterdir())) == 5


@pytest.mark.parametrize(
    "damage", [lambda old: b"", lambda old: old[: len(old) // 2], lambda old: old.replace(old[200:230], bytes(30))]
)
@pytest.mark.fault("the store", "damaged cases", "they are computed again")
def test_a_damaged_file_is_made_again(folder: Path, damage) -> None:
    expected = stored.stored_cases(squared(), 0, 1, 1e-4)
    (file,) = folder.iterdir()
    whole = file.read_bytes()
    file.write_bytes(damage(whole))
    assert all(map(equal, expected, stored.stored_cases(squared(), 0, 1, 1e-4)))
    assert file.read_bytes() == whole


def test_large_cases_and_dtypes_that_files_do_not_hold_are_not_kept(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (case,) = choose_cases(squared(), 0, 1, 1e-4)
    strange = {name: value.astype(ml_dtypes.bfloat16) for name, value in case.expected.items()}
    monkeypatch.setattr(stored, "choose_cases", lambda *_: [Case(case.inputs, strange, strange)])
    assert stored.stored_cases(squared(), 0, 1, 1e-4)[0].expected is strange
    monkeypatch.setattr(stored, "choose_cases", choose_cases)
    monkeypatch.setattr(stored, "MOST_BYTES", 8)
    stored.stored_cases(squared(), 0, 1, 1e-4)
    assert all(file.stat().st_size < 8 for file in folder.iterdir())


def test_a_store_that_is_off_or_full_loses_no_error_and_no_case(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "store").write_bytes(b"no folder")
    assert len(stored.stored_cases(squared(), 0, 2, 1e-4)) == 2
    with pytest.raises(ModelError):
        stored.stored_cases(squared(float("nan")), 0, 1, 1e-4)
    monkeypatch.setattr(result_store, "_root", lambda: None)
    assert len(stored.stored_cases(squared(), 0, 2, 1e-4)) == 2
