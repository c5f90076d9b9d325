"""Indices among scores within the bound of verification of each other are right, and no others."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from passfit.data.samples import InputForm, read_samples
from passfit.errors import NumericError
from passfit.evaluate.bound import outside_bound
from passfit.memory.measured import ReorderedRows
from passfit.verify.cases import add_plain_sums, choose_cases
from passfit.verify.compare import Case, Difference, compare

from ..models import model_of

TOLERANCE, ROWS, CLASSES = 1e-4, 3, 6
#: classes 1 and 4 have scores within rounding of each other, and are the best; the others are far below
TWINS = {1: 4, 4: 1}


def model(*nodes: onnx.NodeProto, shape: list[int], results: int = TensorProto.INT32) -> onnx.ModelProto:
    """Return products of positive inputs, of which `nodes` make indices."""
    weights = np.tile(np.float32([0.1, 0.9, 0.2, 0.3, 0.9, 0.05]), (4, 1))
    weights[:, 4] *= np.float32(1 - 3e-6)
    nodes = (helper.make_node("MatMul", ["x", "w"], ["scores"]), *nodes)
    return model_of(nodes, {"x": [ROWS, 4]}, {"y": shape}, {"w": weights, "k": np.int64([3])}, dtypes={"y": results})


ARGMAX = model(
    helper.make_node("ArgMax", ["scores"], ["index"], axis=1, keepdims=0),
    helper.make_node("Cast", ["index"], ["y"], to=TensorProto.INT32),
    shape=[ROWS],
)
TOP = model(
    helper.make_node("TopK", ["scores", "k"], ["values", "index"]),
    helper.make_node("Cast", ["index"], ["y"], to=TensorProto.INT32),
    shape=[ROWS, 3],
)


def case_of(made: onnx.ModelProto) -> Case:
    (case,) = choose_cases(made, 0, 1, TOLERANCE)
    inputs = {"x": np.random.default_rng(0).uniform(0.5, 1, (ROWS, 4)).astype(np.float32)}
    (chosen,) = choose_cases(made, 0, 0, TOLERANCE, samples={"mine": inputs})
    return replace(case, **{name: getattr(chosen, name) for name in ("inputs", "expected", "optimized", "double")})


def look(made: onnx.ModelProto, case: Case, found: np.ndarray) -> Difference:
    return compare([{"y": found}], add_plain_sums(made, [case]), TOLERANCE)


def test_the_largest_of_near_ties_may_be_either():
    case = case_of(ARGMAX)
    found = case.expected["y"].copy()
    found[1] = TWINS[int(found[1])]

    with pytest.raises(NumericError, match="'y'"):
        compare([{"y": found}], [case], TOLERANCE)
    looked = look(ARGMAX, case, found)
    assert looked.reordered == ReorderedRows(1, ROWS, looked.reordered.max_rel_error)
    assert 0 < looked.reordered.max_rel_error < TOLERANCE
    assert look(ARGMAX, case, case.expected["y"]).reordered is None


@pytest.mark.parametrize("wrong", [0, 2, 5, -1, CLASSES])
def test_the_index_of_a_smaller_score_is_refused(wrong: int):
    case = case_of(ARGMAX)
    found = case.expected["y"].copy()
    found[1] = wrong
    with pytest.raises(NumericError, match="'y' of"):
        look(ARGMAX, case, found)


def test_the_first_of_near_ties_come_in_any_order_and_none_twice():
    case = case_of(TOP)
    swapped = case.expected["y"].copy()
    swapped[2, :2] = swapped[2, 1::-1]
    assert look(TOP, case, swapped).reordered.rows == 1

    twice = case.expected["y"].copy()
    twice[2, 1] = twice[2, 0]
    far = case.expected["y"].copy()
    far[2] = far[2, [0, 2, 1]]
    for wrong in (twice, far):
        with pytest.raises(NumericError, match="'y' of"):
            look(TOP, case, wrong)


def test_scores_of_integers_have_an_order():
    made = model(
        helper.make_node("Cast", ["scores"], ["whole"], to=TensorProto.INT32),
        helper.make_node("ArgMax", ["whole"], ["y"], axis=1, keepdims=0),
        shape=[ROWS],
        results=TensorProto.INT64,
    )
    (looked,) = add_plain_sums(made, [case_of(made)])
    assert not looked.choices


@pytest.mark.parametrize("bad", [None, 0, 11, 19])
def test_of_many_samples_each_other_decision_is_looked_at(tmp_path: Path, bad: int | None):
    values = np.random.default_rng(0).uniform(0.5, 1, (20, ROWS, 4)).astype(np.float32)
    np.save(tmp_path / "x.npy", values)
    samples = read_samples(str(tmp_path / "x.npy"), [InputForm("x", np.dtype("float32"), (ROWS, 4))])
    expected = np.tile(np.int32([1, 1, 1]), (20, 1))
    found = np.where(expected == 1, 4, 1).astype(np.int32)
    if bad is not None:
        found[bad, 2] = 0
    said = outside_bound(ARGMAX, None, samples, list(range(20)), {"y": found}, {"y": expected}, TOLERANCE)
    assert said == "" if bad is None else f"sample {bad}," in said
