"""Programs without steps: nothing is computed, or every kernel becomes a window or a view."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper

pytest.importorskip("tvm")

from passfit.frontend.canonicalise import canonicalize
from passfit.frontend.imported_model import port_names
from passfit.frontend.relax.to_relax import to_relax
from passfit.memory import plan_arena, validate_plan
from passfit.passes.sequence.replay import replay
from passfit.passes.sequence.sequence import Sequence
from passfit.search.search import search
from passfit.search.strategies import STRATEGIES
from passfit.search.strategies.trace import Limits
from passfit.targets import get_target

from ..models import model_of

pytestmark = pytest.mark.tvm

TARGET = get_target("x86-64")
node = helper.make_node


def _integers(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


#: nodes, shapes of inputs, outputs with their dtypes, constants
MODELS = {
    "identity": ([node("Identity", ["x"], ["y"])], {"x": [2, 3]}, ["y"], {}),
    "input-is-output": ([], {"x": [2, 3]}, ["x"], {}),
    "constant": ([], {}, ["c"], {"c": np.arange(4, dtype=np.float32)}),
    "scalar": ([node("Identity", ["x"], ["y"])], {"x": []}, ["y"], {}),
    "input-unread": ([], {"x": [7]}, ["c"], {"c": np.float32(3)}),
    "shape": ([node("Shape", ["x"], ["y"])], {"x": [2, 3]}, ["y"], {}),
    "view": ([node("Reshape", ["x", "s"], ["y"])], {"x": [16, 4]}, ["y"], {"s": _integers(64)}),
    "slice": ([node("Slice", ["x", "s", "e"], ["y"])], {"x": [64, 4]}, ["y"], {"s": _integers(16), "e": _integers(32)}),
    "split": ([node("Split", ["x"], ["y", "z"], num_outputs=2)], {"x": [64, 4]}, ["y", "z"], {}),
    "concat": ([node("Concat", ["x", "z"], ["y"], axis=0)], {"x": [16, 4], "z": [16, 4]}, ["y"], {}),
    "split-concat": (
        [node("Split", ["x"], ["a", "b"], num_outputs=2), node("Concat", ["a", "b"], ["y"], axis=0)],
        {"x": [64, 4]}, ["y"], {},
    ),
    "no-elements": ([node("Relu", ["x"], ["y"])], {"x": [0, 3]}, ["y"], {}),
    "no-elements-at-all": ([], {}, ["c"], {"c": np.zeros((0, 3), np.float32)}),
}  # fmt: skip


def canonical(name: str):
    nodes, inputs, outputs, constants = MODELS[name]
    dtypes = {"y": TensorProto.INT64} if name == "shape" else {}
    results = {each: inputs.get(each) for each in outputs}
    return canonicalize(model_of(nodes, inputs, results, constants, opset=18, dtypes=dtypes))


@pytest.mark.parametrize("name", MODELS)
def test_the_search_ends_and_its_sequence_replays_to_what_was_promised(name: str) -> None:
    model = canonical(name)
    module = to_relax(model)
    result = search(module, name, TARGET, *port_names(model))
    assert result.best.kernels == 0 and result.best.floor == 0 and result.best.ram == result.best.arena
    assert result.best.ram <= result.baseline.ram
    sequence = Sequence.parse(result.sequence.specs)
    lowered, workspace = replay(sequence, module, model, name)
    plan = plan_arena(lowered.program, TARGET.alignment)
    validate_plan(lowered.program, plan, TARGET.alignment)
    assert (len(lowered.program.steps), plan.arena, workspace) == (0, result.best.arena, 0)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("name", ["no-elements-at-all", "slice"])
def test_every_strategy_takes_them(strategy: str, name: str) -> None:
    model = canonical(name)
    result = search(to_relax(model), name, TARGET, *port_names(model), strategy=strategy, limits=Limits(evaluations=30))
    assert result.best.ram <= result.baseline.ram
