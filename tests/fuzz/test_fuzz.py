"""A short run of the fuzzer, the faults it found before, and its own laws."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from onnx import helper

from passfit.targets.native import native_target

from ..models import model_of
from .campaign import drawer, preload
from .cases import NEWEST, OLDEST, Case, forms, operator_case, read_case, write_case
from .execute import run_seeds
from .judge import difference, judge
from .reduce import reduced, verdict_of
from .reference import expected

FOUND = Path(__file__).parent / "found"
native = pytest.mark.skipif(native_target() is None, reason="no target of the catalogue runs natively on this machine")


def _case(op: str = "Relu", wrong: float = 0.0) -> Case:
    x = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)
    model = model_of([helper.make_node(op, ["x"], ["y"])], {"x": x.shape}, ["y"])
    outputs = tuple(value + np.float32(wrong) for value in expected(model, {"x": x}))
    return Case(op, model, {"x": x}, outputs)


def test_a_seed_is_a_case() -> None:
    for seed in (0, 17, 205):
        one, other = operator_case(seed), operator_case(seed)
        assert one.model.SerializeToString() == other.model.SerializeToString()
        assert [v.tobytes() for v in one.inputs.values()] == [v.tobytes() for v in other.inputs.values()]
        assert one.passes == other.passes


def test_forms_cover_every_set_of_an_operator() -> None:
    ranges = [(first, last) for name, first, last in forms() if name == "Softmax"]
    assert ranges == [(OLDEST, 10), (11, 12), (13, NEWEST)]
    assert len({name for name, _, _ in forms()}) > 140


def test_differences_are_those_of_values_dtypes_and_signs_of_infinity() -> None:
    wanted = np.asarray([1, np.nan, np.inf, 0], np.float32)
    assert difference([wanted + np.float32(1e-6)], [wanted]) == ""
    assert difference([np.asarray([1, 0, np.inf, 0], np.float32)], [wanted])
    assert difference([np.asarray([1, np.nan, -np.inf, 0], np.float32)], [wanted])
    assert difference([wanted.astype(np.float64)], [wanted])


def test_a_case_is_read_as_it_was_written(tmp_path: Path) -> None:
    case = operator_case(3)
    write_case(case, tmp_path / case.title)
    again = read_case(tmp_path / case.title)
    assert difference(again.outputs, case.outputs) == "" and again.passes == case.passes
    assert again.model == case.model and list(again.inputs) == list(case.inputs)


def test_a_fault_is_reduced_and_stays_one() -> None:
    names = ["x", "a", "b", "c", "y"]
    ops = ["Neg", "Exp", "Relu", "Abs"]
    nodes = [helper.make_node(op, [one], [other]) for op, one, other in zip(ops, names, names[1:])]
    model = model_of(nodes, {"x": (4, 6)}, ["y"])
    inputs = {"x": np.ones((4, 6), np.float32)}
    case = Case("chain", model, inputs, expected(model, inputs))
    small = reduced(case, lambda trial: any(node.op_type == "Exp" for node in trial.model.graph.node))
    assert [node.op_type for node in small.model.graph.node] == ["Exp"]
    assert all(value.size == 1 for value in small.inputs.values())


def test_a_pixel_that_counts_is_no_open_question() -> None:
    x = np.asarray([[[1, 2, np.inf, 4]]], np.float32)
    node = helper.make_node(
        "Resize", ["x", "", "", "s"], ["y"], mode="linear", coordinate_transformation_mode="asymmetric"
    )
    model = model_of([node], {"x": x.shape}, ["y"], {"s": np.asarray([1, 1, 8])}, opset=19)
    case = Case("Resize-19", model, {"x": x}, expected(model, {"x": x}))
    (right,) = case.outputs
    assert np.isnan(right[0, 0, 2])  # 2 · 1 + inf · 0
    for place, value, verdict in ((2, 2, "disputed"), (2, 3, "wrong"), (0, np.nan, "wrong"), (4, 0, "wrong")):
        found = right.copy()
        found[0, 0, place] = value
        assert judge(0, case, [found]).verdict == verdict


@native
@pytest.mark.slow
def test_a_wrong_result_and_a_dead_process_are_seen() -> None:
    preload()
    assert verdict_of(_case()).verdict == "ok"
    assert verdict_of(replace(_case(wrong=1.0))).verdict in ("wrong", "disputed")
    assert judge(0, _case(), [_case().outputs[0] + 1]).verdict == "wrong"

    def dies(seed: int) -> Case:
        if seed == 1:
            import os

            os.abort()
        return _case()

    assert {each.seed: each.verdict for each in run_seeds(dies, range(3))} == {0: "ok", 1: "crash", 2: "ok"}


@native
@pytest.mark.slow
@pytest.mark.parametrize("kind, count", [("operators", 40), ("networks", 6)])
def test_a_short_run_ends_every_case(kind: str, count: int) -> None:
    preload()
    results = list(run_seeds(drawer(kind), range(0, 11 * count, 11)))
    assert len(results) == count
    assert sum(each.verdict == "ok" for each in results) >= count // 2


@native
@pytest.mark.slow
def test_what_was_found_is_mended() -> None:
    preload()
    cases = [read_case(folder) for folder in sorted(FOUND.iterdir())] if FOUND.exists() else []
    results = run_seeds(lambda number: cases[number], range(len(cases)))
    assert [each for each in results if each.verdict not in ("ok", "disputed", "refused")] == []


def test_a_network_may_be_as_far_away_as_last_places_of_its_inputs_move_it() -> None:
    x = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)
    nodes = [helper.make_node("Mul", ["x", "k"], ["a"]), helper.make_node("Sin", ["a"], ["y"])]
    model = model_of(nodes, {"x": x.shape}, ["y"], {"k": np.float32(3e4)})
    case = Case("float", model, {"x": x}, expected(model, {"x": x}))
    (right,) = case.outputs
    assert judge(0, case, [right + np.float32(5e-3)]).verdict == "ok"
    assert judge(0, case, [right + np.float32(0.2)]).verdict == "wrong"
    assert judge(0, replace(case, title="Sin-7"), [right + np.float32(5e-3)]).verdict == "wrong"
