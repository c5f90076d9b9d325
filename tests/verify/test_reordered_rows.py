"""Rows of outputs in another order, and outputs that differ otherwise."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from passfit.errors import NumericError
from passfit.memory.footprint import Measured
from passfit.memory.measured import ReorderedRows
from passfit.verify.compare import compare
from passfit.verify.integers.matched_rows import match_rows

SCALES = {"boxes": 1.0, "scores": 1.0}
TOLERANCE = 1e-4


def detections(count: int, seed: int) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)
    boxes = random.permutation(count * 4).reshape(1, count, 4) / (count * 4)
    classes = random.integers(0, 3, (count,))
    return {"boxes": boxes, "scores": np.full((1, count), 0.5), "classes": classes}


def order(outputs: dict[str, np.ndarray], places: list[int]) -> dict[str, np.ndarray]:
    return {name: np.take(value, places, axis=0 if name == "classes" else 1) for name, value in outputs.items()}


@given(st.permutations(range(9)), st.integers(0, 99), st.floats(0, 0.9 * TOLERANCE))
def test_rows_in_another_order_are_counted_and_their_error_is_that_of_their_twins(
    places: list[int], seed: int, error: float
) -> None:
    wanted = detections(9, seed)
    found = order(wanted, places)
    found["scores"] = found["scores"] + error
    moved = sum(place != number for number, place in enumerate(places))
    matched = match_rows([found], [wanted], SCALES, TOLERANCE)
    assert matched == (ReorderedRows(moved, 9, matched.max_rel_error) if moved else None)
    assert matched is None or abs(matched.max_rel_error - error) <= 1e-12


def test_rows_with_a_value_of_their_own_are_not_another_order() -> None:
    wanted = detections(6, 0)
    for name in wanted:
        found = order(wanted, [1, 0, 2, 3, 4, 5])
        found[name] = found[name].copy()
        found[name].reshape(-1)[0] += 1
        assert match_rows([found], [wanted], SCALES, TOLERANCE) is None


def test_a_row_is_taken_once_and_equal_nan_and_infinities_are_equal() -> None:
    wanted = {"boxes": np.asarray([[np.nan, 1], [np.inf, 2], [0, 3]])}
    swapped = {"boxes": wanted["boxes"][[1, 0, 2]]}
    assert match_rows([swapped], [wanted], SCALES, TOLERANCE) == ReorderedRows(2, 3, 0.0)
    twice = {"boxes": wanted["boxes"][[1, 1, 2]]}
    assert match_rows([twice], [wanted], SCALES, TOLERANCE) is None


def test_a_comparison_says_that_only_the_order_differs() -> None:
    wanted = {name: value.astype(np.float32) for name, value in detections(6, 1).items() if name != "classes"}
    found = order(wanted, [1, 0, 2, 3, 4, 5])
    # the reference in double precision orders them as the library does
    case = SimpleNamespace(
        expected=wanted, optimized=wanted, double={name: value.astype(np.float64) for name, value in found.items()},
        plain=None, witnesses=(), choices={}, units=0, scales={}, name="",
    )  # fmt: skip
    difference = compare([found], [case], TOLERANCE)
    assert difference.relative > 0.1 and difference.reordered == ReorderedRows(2, 6, 0.0)
    same = compare([wanted], [SimpleNamespace(**{**vars(case), "double": None})], TOLERANCE)
    assert same.reordered is None


def test_integers_move_with_the_rows_of_floats_and_never_alone() -> None:
    wanted = detections(6, 1)
    found = order(wanted, [1, 0, 2, 3, 4, 5])
    wanted["classes"], found["classes"] = np.arange(6), np.asarray([1, 0, 2, 3, 4, 5])
    case = SimpleNamespace(
        expected=wanted, optimized=wanted, double=found, plain=None, witnesses=(), choices={}, units=0, scales={}, name=""
    )  # fmt: skip
    assert compare([found], [case], TOLERANCE).reordered == ReorderedRows(2, 6, 0.0)
    for wrong in ({**wanted, "classes": found["classes"]}, {**found, "classes": np.asarray([1, 0, 2, 3, 4, 4])}):
        with pytest.raises(NumericError, match="'classes' of case 0, element"):
            compare([wrong], [case], TOLERANCE)
    assert match_rows([{"classes": found["classes"]}], [{"classes": wanted["classes"]}], {}, TOLERANCE) is None
    # rows of equal floats have an order: their own
    same = {"scores": np.ones(6, np.float32)}
    numbers = [{**same, "classes": each["classes"]} for each in (found, wanted)]
    assert match_rows(numbers[:1], numbers[1:], {"scores": 1.0}, TOLERANCE) is None
    near = {"scores": np.float32([1 - 1e-7, 1, 1, 1, 1, 1]), "classes": found["classes"]}
    assert match_rows([near], numbers[1:], {"scores": 1.0}, TOLERANCE) is not None


def test_the_error_is_said_with_the_rows_that_were_matched_for_it() -> None:
    plain = Measured(True, "native", max_rel_error=0.65)
    moved = Measured(True, "native", max_rel_error=0.65, reordered=ReorderedRows(12, 100, 3e-7))
    assert plain.error_summary == "6.5e-01 of the range" and plain.matched_error == 0.65
    assert moved.error_summary.startswith("3.0e-07 of the range after matching 12 of 100 rows")
    assert moved.error_summary.endswith("(6.5e-01 in place)") and moved.matched_error == 3e-7
