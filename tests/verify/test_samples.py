"""The user's samples are cases of their own: within the bound of verification, named, and kept out of the seeded ones."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from passfit import api
from passfit.data.samples import InputForm
from passfit.errors import ConfigError, NumericError
from passfit.search.settings import SearchSettings
from passfit.support import result_store
from passfit.targets import get_target
from passfit.verify.cases import choose_cases
from passfit.verify.compare import Difference, farthest
from passfit.verify.inputs import SAMPLES, assumed_inputs, input_forms, read_user_samples
from passfit.verify.run import _compare
from passfit.verify.stored_cases import stored_cases

from ..models import model_of


def squares():
    return model_of([helper.make_node("Mul", ["x", "x"], ["y"])], {"x": [1, 4]}, {"y": [1, 4]})


def rows(count: int, scale: float = 1.0) -> dict[str, dict[str, np.ndarray]]:
    values = scale * np.random.default_rng(0).normal(size=(count, 1, 4)).astype(np.float32)
    return {f"{number}.png": {"x": value.astype(np.float32)} for number, value in enumerate(values)}


def test_samples_are_cases_behind_the_seeded_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(result_store, "_root", lambda: tmp_path)
    seeded = choose_cases(squares(), 0, 3, 1e-4)
    for _ in range(2):  # the second time from the store
        cases = stored_cases(squares(), 0, 3, 1e-4, samples=rows(2))
        assert [case.name for case in cases] == ["", "", "", "0.png", "1.png"]
        assert all(case.double is not None and case.reference == "onnxruntime" for case in cases)
        for case, before in zip(cases, seeded):
            assert np.array_equal(case.inputs["x"], before.inputs["x"])
        assert np.array_equal(cases[3].expected["y"], rows(2)["0.png"]["x"] ** 2)
    other = stored_cases(squares(), 0, 3, 1e-4, samples=rows(2, 3.0))
    assert not np.array_equal(other[3].inputs["x"], cases[3].inputs["x"])
    assert [case.name for case in choose_cases(squares(), 0, 0, 1e-4, samples=rows(1))] == ["0.png"]


def test_a_wrong_sample_is_named_and_large_samples_do_not_widen_the_bound_of_seeded_cases():
    cases = choose_cases(squares(), 0, 3, 1e-4, samples=rows(2, 1e4))
    outputs = [{"y": case.expected["y"].copy()} for case in cases]
    assert _compare(outputs, cases, 1e-4, lambda cases: cases).relative == 0
    outputs[4]["y"] = outputs[4]["y"] * np.float32(1.01)
    with pytest.raises(NumericError, match=r"output 'y' of sample 1.png, element"):
        _compare(outputs, cases, 1e-4, lambda cases: cases)
    outputs[4] = cases[4].expected
    outputs[0]["y"] = outputs[0]["y"] + np.float32(0.1)  # far below the tolerance of squares up to 1e8
    with pytest.raises(NumericError, match=r"output 'y' of case 0, element"):
        _compare(outputs, cases, 1e-4, lambda cases: cases)


def test_the_farthest_of_several_differences():
    one, other = Difference(1.0, 0.1, 0.2, 0.3), Difference(0.5, 0.4, 0.1, 0.6)
    assert farthest([one, other]) == farthest([other, one]) == Difference(1.0, 0.4, 0.2, 0.6)
    assert farthest([one, replace(other, library_to_double=None)]).library_to_double is None


def test_a_few_samples_are_read_in_the_form_of_the_inputs(tmp_path: Path):
    np.savez(tmp_path / "x.npz", x=np.zeros((30, 4), np.float32))
    samples = read_user_samples(tmp_path / "x.npz", squares())
    assert len(samples.inputs) == SAMPLES and all(each["x"].shape == (1, 4) for each in samples.inputs.values())
    assert input_forms(squares()) == [InputForm("x", np.dtype("float32"), (1, 4))]
    np.savez(tmp_path / "x.npz", x=np.zeros((30, 5), np.float32))
    with pytest.raises(ConfigError, match=r"the model takes float32\[1, 4\]"):
        read_user_samples(tmp_path / "x.npz", squares())


def test_drawn_inputs_that_mean_little_are_described():
    nodes = [
        helper.make_node("Gather", ["table", "ids"], ["rows"]),
        helper.make_node("Where", ["shown", "rows", "zero"], ["some"]),
        helper.make_node("Cast", ["sound"], ["wave"], to=TensorProto.FLOAT),
        helper.make_node("Add", ["wave", "picture"], ["mixed"]),
    ]
    model = model_of(
        nodes,
        {"ids": [4], "shown": [4, 3], "sound": [16], "picture": [16]},
        {"some": [4, 3], "mixed": [16]},
        {"table": np.zeros((5, 3), np.float32), "zero": np.float32(0)},
        dtypes={"ids": TensorProto.INT64, "shown": TensorProto.BOOL, "sound": TensorProto.INT16},
    )
    found = assumed_inputs(model)
    assert found["ids"] == "whole numbers at random, from -5 to 4"
    assert found["sound"].startswith("whole numbers at random")
    assert found["shown"] == "true and false at random"
    assert "picture" not in found


@pytest.mark.tvm
def test_an_output_without_a_row_in_any_case_is_said_and_samples_mend_it(tmp_path: Path):
    places = helper.make_node("NonZero", ["far"], ["places"])
    nodes = [
        helper.make_node("Mul", ["x", "x"], ["square"]),
        helper.make_node("Greater", ["square", "most"], ["far"]),
        places,
    ]
    constants = {"most": np.float32(1e6)}
    onnx.save(
        model_of(nodes, {"x": [1, 4]}, {"places": [2, None]}, constants, dtypes={"places": TensorProto.INT64}),
        tmp_path / "m.onnx",
    )
    np.savez(tmp_path / "x.npz", x=np.full((1, 4), 1e7, np.float32))
    search = SearchSettings(strategy="tvm-default")
    for data, said in ((None, "no verified case has a row of 'places': --data compares"), (tmp_path / "x.npz", "")):
        made = api.compile_model(
            tmp_path / "m.onnx", get_target("x86-64"), out=tmp_path / f"out{data is None}", search=search, data=data
        )
        assert made.measured.no_rows_summary.startswith(said) and bool(made.measured.no_rows_summary) == bool(said)
        assert ("no_rows" in made.to_json()["measured"]) == bool(said)
