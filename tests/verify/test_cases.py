import os
import signal

import numpy as np
import pytest
from onnx import TensorProto, helper

from passfit.errors import ModelError
from passfit.frontend.canonical.folding import evaluate
from passfit.frontend.canonical.folding.evaluate import failures_of_runs
from passfit.frontend.imported_model import load
from passfit.verify import cases, reference
from passfit.verify.cases import choose_cases
from passfit.verify.inputs import make_input

from ..models import model_of, run, save


def faint_unless_patchy(limit: float):
    """Make y = Sigmoid(20·x − limit): 0 or 1 on patches, faint on some noise."""
    nodes = [
        helper.make_node("Mul", ["x", "scale"], ["big"]),
        helper.make_node("Sub", ["big", "limit"], ["shifted"]),
        helper.make_node("Sigmoid", ["shifted"], ["y"]),
    ]
    constants = {"scale": np.float32(20), "limit": np.float32(limit)}
    return model_of(nodes, {"x": [1, 64]}, {"y": [1, 64]}, constants)


def test_the_same_seed_chooses_the_same_cases():
    first, again = (choose_cases(faint_unless_patchy(10.0), 3, 3, 1e-4) for _ in range(2))
    assert len(first) == 3
    for one, other in zip(first, again, strict=True):
        assert np.array_equal(one.inputs["x"], other.inputs["x"])
        assert np.array_equal(one.expected["y"], other.expected["y"])


def test_there_are_as_many_cases_as_asked_for_even_when_none_is_certain():
    assert len(choose_cases(faint_unless_patchy(10.0), 0, 5, 0.0)) == 5


def test_cases_are_certain_where_they_can_be():
    assert all(case.uncertainty <= 1e-5 for case in choose_cases(faint_unless_patchy(10.0), 0, 3, 1e-4))


def test_draws_without_nan_come_first():
    """ONNX's variance, the mean of squares less the square of the mean, is below 0 for some equal numbers."""
    node = helper.make_node("MeanVarianceNormalization", ["x"], ["y"], axes=[1])
    model = model_of([node], {"x": [2, 3, 4, 5]}, {"y": [2, 3, 4, 5]}, opset=13)
    everywhere = [
        cases.Case(each, cases.Reference(model)(each), {})
        for each in map(cases.InputDraws(model).draw, [0] * 9, range(9))
    ]
    assert any(each.has_nan for each in everywhere)
    assert not any(each.has_nan for each in choose_cases(model, 0, 3, 1e-4))


def test_draws_with_rows_come_first(tmp_path):
    """Of outputs whose length the data decide, one without rows is compared in nothing: one such draw is enough."""
    nodes = [helper.make_node("Greater", ["x", "most"], ["many"]), helper.make_node("NonZero", ["many"], ["y"])]
    model = model_of(nodes, {"x": [3]}, ["y"], {"most": np.float32(0.8)}, dtypes={"y": TensorProto.INT64})
    loaded = load(save(model, tmp_path))
    drawn = [run(model, make_input(loaded.drawn_for, 0, number))[0] for number in range(8)]
    assert any(not each.size for each in drawn[:3])
    chosen = choose_cases(loaded.onnx, 0, 3, 1e-4, loaded.given)
    assert all(case.expected["y"].shape == (1, 3) for case in chosen)
    counts = [case.expected["y_length"].item() for case in chosen]
    assert counts[0] > 0 and counts.count(0) == 1


def _end_process() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _refuse() -> None:
    raise failures_of_runs()[0]("INVALID_GRAPH")


@pytest.mark.parametrize("fail", [_refuse, _end_process])
def test_a_model_that_onnx_runtimes_optimisations_break_is_compared_with_the_plain_one(monkeypatch, fail):
    asked = []

    def open_session(model, *, optimized=False):
        asked.append(optimized)
        if optimized:
            fail()
        return evaluate.open_session(model)

    monkeypatch.setattr(reference, "open_session", open_session)
    assert [case.uncertainty for case in choose_cases(faint_unless_patchy(10.0), 0, 2, 1e-4)] == [0.0, 0.0]
    assert asked == [False]  # optimised in another process alone


@pytest.mark.parametrize("limit", [float("nan")])
def test_an_output_that_is_nan_throughout_cannot_be_verified(limit):
    with pytest.raises(ModelError, match="nothing but NaN for the output 'y'"):
        choose_cases(faint_unless_patchy(limit), 0, 2, 1e-4)


def test_a_model_that_ordinary_draws_lead_to_nan_is_drawn_gently():
    nodes = [
        helper.make_node("Mul", ["x", "x"], ["square"]),
        helper.make_node("Sub", ["half", "square"], ["rest"]),
        helper.make_node("Sqrt", ["rest"], ["root"]),
        helper.make_node("ReduceSum", ["root"], ["y"], keepdims=0),
    ]
    model = model_of(nodes, {"x": [1, 200]}, {"y": []}, {"half": np.float32(0.5)})
    chosen = choose_cases(model, 0, 2, 1e-4)
    assert len(chosen) == 2 and all(np.isfinite(case.expected["y"]) for case in chosen)
