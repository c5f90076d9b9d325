"""Results that grow over operands: tried on a winner, kept if they need less memory and hardly more cycles."""

from dataclasses import replace
from functools import cache

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

pytest.importorskip("tvm")

from passfit.frontend.canonicalise import canonicalize
from passfit.frontend.imported_model import port_names
from passfit.frontend.relax.to_relax import to_relax
from passfit.memory import plan_arena
from passfit.passes.sequence.catalogue import parse_spec
from passfit.passes.sequence.replay import replay
from passfit.passes.sequence.sequence import TVM_DEFAULT
from passfit.search.evaluate.evaluation import Evaluator
from passfit.search.refine import growing
from passfit.search.refine.growing import try_growth
from passfit.search.refine.levers import Refinement, refine
from passfit.search.refine.splitting import Splitter
from passfit.targets import Target, get_target

from ...models import model_of

pytestmark = pytest.mark.tvm
TARGET = get_target("x86-64")


@cache
def picture() -> onnx.ModelProto:
    """Two convolutions from a picture to a result of about as many bytes: both are the peak, with a few rows between."""
    random = np.random.default_rng(0)
    weights = [
        numpy_helper.from_array(random.normal(0, 0.2, s).astype(np.float32), n)
        for n, s in {"w": (12, 3, 3, 3), "v": (12, 12, 3, 3)}.items()
    ]
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["wide"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["wide"], ["positive"]),
        helper.make_node("Conv", ["positive", "v"], ["narrow"], pads=[1, 1, 1, 1], strides=[2, 2]),
        helper.make_node("GlobalAveragePool", ["narrow"], ["means"]),
        helper.make_node("Mul", ["narrow", "means"], ["scaled"]),
        helper.make_node("GlobalAveragePool", ["scaled"], ["y"]),
    ]
    return canonicalize(model_of(nodes, {"x": [1, 3, 32, 32]}, ["y"], weights))


@cache
def refined(target: Target = TARGET) -> tuple[Evaluator, Splitter, Refinement]:
    model = picture()
    evaluator = Evaluator(to_relax(model), "picture", target, *port_names(model))
    splitter = Splitter(evaluator)
    return (
        evaluator,
        splitter,
        refine(evaluator, splitter, evaluator.evaluate(tuple(map(parse_spec, TVM_DEFAULT))), 0.25),
    )


def test_a_result_that_grows_lowers_the_ram_and_replays_to_it():
    after = try_growth(*refined(), 0.25)
    last = after.levers[-1]
    assert after.ram < refined()[2].ram and (last.lever, last.arena) == ("grow", after.best.footprint.arena)
    assert any("in_place=2" in spec for spec in after.best.sequence.specs)
    lowered, _ = replay(after.best.sequence, to_relax(picture()), picture(), "picture", TARGET.machine)
    assert plan_arena(lowered.program, TARGET.alignment).arena == last.arena


def test_more_cycles_than_allowed_leave_the_winner(monkeypatch):
    monkeypatch.setattr(growing, "_CYCLES", 0.1)
    before = refined()
    assert try_growth(*before, 0.25) is before[2]


def test_libraries_of_several_threads_keep_results_apart():
    before = refined(replace(TARGET, threads=2))
    assert try_growth(*before, 0.25) is before[2]


def test_the_plan_of_fewest_bytes_times_cycles_is_chosen_of_those_close_to_the_least(monkeypatch):
    plans = {100: 90, 103: 50, 104: 60, 120: 10}  # cycles by ram
    before = refined()
    made = {ram: replace(before[2].best, footprint=replace(before[2].best.footprint, ram=ram)) for ram in plans}
    monkeypatch.setattr(growing, "_try", lambda *_: iter([list(made.values())[:2], list(made.values())[2:]]))
    cycles = {id(made[ram]): count for ram, count in plans.items()}
    monkeypatch.setattr(growing, "cycles_of", lambda _, asked: [cycles.get(id(each), 100) for each in asked])
    assert try_growth(*before, 0.25).best is made[103]
