"""Splits found by the search: never worse, within the arithmetic allowed, the same every time, replayed as promised."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from onnx import helper, numpy_helper

pytest.importorskip("tvm")

from passfit.frontend.canonicalise import canonicalize
from passfit.frontend.imported_model import port_names
from passfit.frontend.relax.to_relax import to_relax
from passfit.memory import plan_arena, validate_plan
from passfit.passes.program.rematerialise import Rematerialise
from passfit.passes.program.split import SplitPass
from passfit.passes.sequence.replay import replay
from passfit.search.evaluate.candidates import Candidate
from passfit.search.evaluate.evaluation import Evaluator
from passfit.search.refine.levers import refine
from passfit.search.refine.splitting import Splitter
from passfit.targets import get_target

from ...models import model_of

pytestmark = pytest.mark.tvm
TARGET = get_target("x86-64")


def image_model(nodes, weights, side=16, channels=3):
    return canonicalize(model_of(nodes, {"x": [1, channels, side, side]}, ["y"], weights))


def conv(weights, source, result, taken, given, stride=1):
    values = np.random.default_rng(len(weights)).standard_normal((given, taken, 3, 3)).astype("float32") / taken
    weights.append(numpy_helper.from_array(values, f"w{len(weights)}"))
    return helper.make_node("Conv", [source, weights[-1].name], [result], pads=[1] * 4, strides=[stride] * 2)


def stack():
    """Wide tensors between narrow ones."""
    weights: list = []
    nodes = [conv(weights, "x", "a", 3, 16), conv(weights, "a", "b", 16, 16, 2), conv(weights, "b", "y", 16, 3, 2)]
    return image_model(nodes, weights)


def hourglass():
    """What is made first is added last, over a wide tensor that nothing splits."""
    weights: list = []
    nodes = [
        conv(weights, "x", "early", 3, 8),
        conv(weights, "early", "small", 8, 3, 4),
        helper.make_node("Flatten", ["small"], ["flat"]),
        helper.make_node("MatMul", ["flat", "wide"], ["long"]),
        helper.make_node("Softmax", ["long"], ["spread"]),
        helper.make_node("MatMul", ["spread", "narrow"], ["gate"]),
        helper.make_node("Mul", ["early", "gate"], ["y"]),
    ]
    for name, shape in (("wide", (48, 4000)), ("narrow", (4000, 1))):
        weights.append(numpy_helper.from_array(np.ones(shape, "float32") / 4000, name))
    return image_model(nodes, weights)


MODELS = {"stack": stack, "hourglass": hourglass}


def found_and_split(model, extra_compute=0.25):
    evaluator = Evaluator(to_relax(model), "small", TARGET, *port_names(model))
    found = evaluator.evaluate(Candidate().passes)
    return evaluator, found, refine(evaluator, Splitter(evaluator), found, extra_compute).best


@pytest.mark.parametrize("name", MODELS)
def test_a_split_program_is_smaller_and_replays_to_what_was_promised(name):
    model = MODELS[name]()
    _, found, best = found_and_split(model, 1.0)
    assert best.footprint.ram < found.footprint.ram
    lowered, workspace = replay(best.sequence, to_relax(model), model, "small")
    plan = plan_arena(lowered.program, TARGET.alignment)
    validate_plan(lowered.program, plan, TARGET.alignment)
    assert (plan.arena, workspace) == (best.footprint.arena, best.footprint.workspace)


def test_what_is_between_two_convolutions_is_not_whole():
    _, found, best = found_and_split(stack())
    assert any(isinstance(each, SplitPass) for each in best.passes)
    assert best.footprint.arena < (16 * 16 * 16 + 3 * 16 * 16) * 4 <= found.footprint.arena


def test_there_is_no_more_arithmetic_than_is_allowed():
    model = hourglass()
    _, _, without = found_and_split(model, 0.0)
    _, _, with_more = found_and_split(model, 1.0)
    assert not any(isinstance(each, Rematerialise) for each in without.passes)
    assert any(isinstance(each, Rematerialise) for each in with_more.passes)
    assert with_more.footprint.ram < without.footprint.ram


def test_what_cannot_be_split_is_left_as_it_was():
    model = image_model([helper.make_node("ReduceMax", ["x"], ["y"], keepdims=1)], [])
    _, found, best = found_and_split(model)
    assert best is found


def test_a_single_kernel_stores_its_rows_over_those_it_has_read():
    weights = [numpy_helper.from_array(np.ones((3, 3, 1, 1), "float32"), "w")]
    model = image_model([helper.make_node("Conv", ["x", "w"], ["y"])], weights)
    _, found, best = found_and_split(model)
    plane = 3 * 16 * 16 * 4
    assert found.footprint.arena == 2 * plane
    assert best.footprint.arena < 1.1 * plane


def test_the_same_splits_are_found_every_time():
    here = [list(found_and_split(MODELS[name](), 1.0)[2].sequence.specs) for name in MODELS]
    assert here == [list(found_and_split(MODELS[name](), 1.0)[2].sequence.specs) for name in MODELS]
    code = (
        "import json; from tests.search.refine.test_splitting import *;"
        "print(json.dumps([list(found_and_split(MODELS[name](), 1.0)[2].sequence.specs) for name in MODELS]))"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "7", "PYTHONPATH": os.pathsep.join([*sys.path, os.getcwd()])}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout.splitlines()[-1]) == here
