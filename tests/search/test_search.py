"""The search on small graphs: never worse than TVM's default, deterministic, and no pass can end it."""

import json
import os
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

pytest.importorskip("tvm")

from hypothesis import given, settings
from hypothesis import strategies as st
from tvm.error import InternalError

from passfit.errors import SequenceError
from passfit.frontend.canonicalise import canonicalize
from passfit.frontend.imported_model import port_names
from passfit.frontend.relax.to_relax import to_relax
from passfit.memory import Budget, plan_arena, validate_plan
from passfit.passes.graph.stock import DeadCodeElimination
from passfit.passes.sequence.catalogue import CATALOGUE, parse_spec
from passfit.passes.sequence.replay import replay
from passfit.passes.sequence.sequence import TVM_DEFAULT, Sequence
from passfit.search.effects.effects import effects
from passfit.search.effort import Effort
from passfit.search.evaluate.evaluation import Evaluator
from passfit.search.evaluate.state_key import state_key
from passfit.search.evaluate.tvm_default import tvm_default
from passfit.search.knowledge import load_knowledge
from passfit.search.search import search
from passfit.search.strategies import STRATEGIES
from passfit.search.strategies.trace import AT_LEAST, AT_MOST, KERNELS, Limits, Trace
from passfit.targets import get_target

from ..models import model_of
from ..profiles import examples

pytestmark = pytest.mark.tvm
TARGET = get_target("x86-64")


def network(blocks, seed=0, side=8, channels=4):
    """A chain of blocks over an image; each block is an operator name, "residual" or "concat"."""
    generator = np.random.default_rng(seed)
    nodes, constants, current, width = [], [], "x", channels
    for number, block in enumerate(blocks):
        name = f"t{number}"
        if block == "conv":
            weight = generator.standard_normal((width, width, 3, 3)).astype("float32") / 6
            constants.append(numpy_helper.from_array(weight, f"w{number}"))
            nodes.append(helper.make_node("Conv", [current, f"w{number}"], [name], f"n{number}", pads=[1, 1, 1, 1]))
        elif block == "bn":
            for part in "sbmv":
                values = generator.random(width).astype("float32") + 0.5
                constants.append(numpy_helper.from_array(values, f"{part}{number}"))
            parts = [f"{part}{number}" for part in "sbmv"]
            nodes.append(helper.make_node("BatchNormalization", [current, *parts], [name], f"n{number}"))
        elif block == "residual":
            nodes.append(helper.make_node("Relu", [current], [f"{name}r"], f"n{number}r"))
            nodes.append(helper.make_node("Add", [current, f"{name}r"], [name], f"n{number}"))
        elif block == "concat":
            nodes.append(helper.make_node("Sigmoid", [current], [f"{name}s"], f"n{number}s"))
            nodes.append(helper.make_node("Concat", [current, f"{name}s"], [name], f"n{number}", axis=1))
            width *= 2
        elif block == "pool":
            options = {"kernel_shape": [2, 2], "strides": [2, 2]}
            nodes.append(helper.make_node("MaxPool", [current], [name], f"n{number}", **options))
        else:
            nodes.append(helper.make_node(block, [current], [name], f"n{number}"))
        current = name
    return canonicalize(model_of(nodes, {"x": [1, channels, side, side]}, [current], constants))


def evaluator(model):
    return Evaluator(to_relax(model), "small", TARGET, *port_names(model))


def parsed(*specs):
    return tuple(map(parse_spec, specs))


BLOCKS = st.lists(st.sampled_from(["conv", "bn", "Relu", "residual", "concat", "Sigmoid"]), min_size=1, max_size=6)


@given(st.integers(1, 2000), st.integers(0, 400))
def test_larger_graphs_are_looked_at_in_fewer_states(kernels, more):
    def states(size):
        evaluator = SimpleNamespace(count=0, operators=0)
        trace = Trace(Limits(), evaluator)
        trace.consider(SimpleNamespace(footprint=SimpleNamespace(kernels=size, ram=1), score=(1,), loss=(), key=0))
        return next(count for count in range(1000) if trace.may_end_before(count + 1))

    assert AT_LEAST <= states(kernels + more) <= states(kernels) <= AT_MOST
    assert states(kernels) == AT_LEAST or states(kernels) * kernels <= KERNELS


def test_a_number_of_states_that_is_asked_for_counts_on_any_graph():
    assert Trace(Limits(evaluations=1000), SimpleNamespace(count=999, effort=Effort())).finished is False


@settings(max_examples=examples(12))
@given(BLOCKS, st.booleans())
def test_the_result_is_never_worse_than_tvms_default_and_replays_to_what_was_promised(blocks, pooled):
    model = network([*blocks, "pool"] if pooled else blocks)
    module = to_relax(model)
    result = search(module, "small", TARGET, *port_names(model), limits=Limits(evaluations=20))
    assert result.best.ram <= result.baseline.ram
    lowered, workspace = replay(result.sequence, module, model, "small")
    plan = plan_arena(lowered.program, TARGET.alignment)
    validate_plan(lowered.program, plan, TARGET.alignment)
    assert (plan.arena, workspace) == (result.best.arena, result.best.workspace)
    assert lowered.program.weight_bytes == result.best.weights


def test_the_trajectory_falls_and_limits_hold():
    model = network(["conv", "bn", "Relu", "concat", "conv", "pool"])
    ports = port_names(model)
    result = search(to_relax(model), "small", TARGET, *ports, limits=Limits(evaluations=5), extra_compute=None)
    assert result.evaluations <= 5
    rams = [point["ram"] for point in result.trajectory]
    assert rams == sorted(rams, reverse=True) and rams[-1] == result.best.ram


def test_a_goal_stops_the_search():
    model = network(["conv", "bn", "Relu", "concat", "conv", "pool"])
    ports = port_names(model)
    limits = Limits(goal=Budget(ram=10**9))
    result = search(to_relax(model), "small", TARGET, *ports, limits=limits)
    assert result.evaluations == 1
    assert not any(spec.startswith("split") for spec in result.sequence.specs), "kernels stay whole where that fits"


def test_a_pass_that_changes_nothing_costs_nothing():
    tried = evaluator(network(["conv", "Relu"]))
    first = tried.evaluate(parsed(*TVM_DEFAULT))
    again = tried.evaluate((DeadCodeElimination(), *parsed(*TVM_DEFAULT)))
    assert tried.count == 1 and again.footprint == first.footprint


def test_a_pass_that_raises_is_a_recorded_failure(monkeypatch):
    def broken(self, module):
        raise InternalError("boom\nthe last line")

    monkeypatch.setenv("PASSFIT_STORE", "off")  # an earlier search may have kept what the pass does
    monkeypatch.setattr(CATALOGUE["eliminate-common-subexpr"], "apply", broken)
    model = network(["conv", "bn", "Relu"])
    result = search(to_relax(model), "small", TARGET, *port_names(model))
    assert any("InternalError: the last line" in reason for reason in result.failures.values())
    assert result.best.ram <= result.baseline.ram
    with pytest.raises(SequenceError, match="eliminate-common-subexpr"):
        replay(Sequence.parse(["eliminate-common-subexpr", *TVM_DEFAULT]), to_relax(model), model, "small")


def test_states_are_equal_up_to_names_and_the_content_of_constants():
    key = state_key(to_relax(network(["conv", "Relu"], seed=0)))
    assert key == state_key(to_relax(network(["conv", "Relu"], seed=1)))
    assert key != state_key(to_relax(network(["conv", "Sigmoid"], seed=0)))
    assert key != state_key(to_relax(network(["conv", "Relu"], channels=3)))


def test_the_baseline_counts_storages_outputs_inputs_and_the_workspace():
    # Relu, pool: the input, one storage for the Relu's result, the output; no kernel has a workspace.
    model = network(["Sigmoid", "pool"])
    found = tvm_default(to_relax(model), TARGET, *port_names(model))
    plane = 4 * 8 * 8 * 4
    assert found.workspace == 0 and found.weights == 0
    assert found.ram == found.arena == plane + plane + plane // 4
    assert found.sum == plane + plane + plane // 4 and found.kernels == 2


def test_fusion_over_poolings_removes_the_tensor_before_them():
    tried = evaluator(network(["conv", "Relu", "pool"]))
    plain = tried.evaluate(parsed(*TVM_DEFAULT)).footprint
    wide = tried.evaluate(parsed("legalize", "fold-constant", "fuse-operators{over=pooling}")).footprint
    assert plain.kernels == 2 and wide.kernels == 1
    plane = 4 * 8 * 8 * 4
    assert (plain.bound, wide.bound) == (2 * plane, plane + plane // 4)


def test_every_kernel_names_its_onnx_nodes():
    model = network(["conv", "bn", "Relu", "concat", "conv", "pool"])
    lowered, _ = replay(Sequence.parse(TVM_DEFAULT), to_relax(model), model, "small")
    named = {node for step in lowered.program.steps for node in step.nodes}
    assert all(step.nodes for step in lowered.program.steps)
    assert named <= {node.name for node in model.graph.node} and len(named) >= len(model.graph.node) - 1


def test_effects_are_counted_from_tvms_default():
    model = network(["conv", "bn", "Relu", "conv"])
    found = effects(to_relax(model), TARGET, *port_names(model))
    by_spec = {each["spec"]: each for each in found["passes"]}
    assert by_spec["fold-batchnorm-to-conv2d"]["changed"]
    assert by_spec["fold-batchnorm-to-conv2d"]["delta"]["weights"] <= 0
    assert not by_spec["remove-redundant-reshape"]["changed"]


def test_two_processes_find_the_same(tmp_path):
    onnx.save(network(["conv", "bn", "concat"]), tmp_path / "m.onnx")
    found = []
    both = """
import sys
from passfit.cli.app import main
for sys.argv in (
    ["passfit", "optimize", "m.onnx", "--target", "rpi4", "--out", sys.argv[1] + "out", "--evaluations", "12"],
    ["passfit", "profile", "m.onnx", "--target", "rpi4", "--out", sys.argv[1] + "effects.json"],
):
    try:
        main()
    except SystemExit as end:
        assert not end.code
"""
    for seed in ("0", "1"):
        own = {"PYTHONHASHSEED": seed, "PASSFIT_STORE": str(tmp_path / seed)}  # the second may not read what is kept
        command = [sys.executable, "-c", both, seed]
        subprocess.run(command, cwd=tmp_path, env=os.environ | own, check=True, capture_output=True)
        files = [tmp_path / f"{seed}out" / file for file in ("sequence.json", "footprint.json", "trajectory.json")]
        files += [tmp_path / f"{seed}effects{suffix}" for suffix in (".json",)]
        found.append([file.read_bytes() for file in files])
    assert found[0] == found[1]
    assert json.loads(found[0][1])["measured"]["ran"] is False


@pytest.mark.parametrize("strategy", sorted(STRATEGIES))
def test_every_strategy_keeps_its_limits_and_its_seed(strategy):
    model = network(["conv", "bn", "Relu", "concat", "conv", "pool"])
    module, ports = to_relax(model), port_names(model)
    default = search(module, "small", TARGET, *ports, strategy="tvm-default").best
    first, again = (
        search(module, "small", TARGET, *ports, strategy=strategy, seed=7, limits=Limits(evaluations=12))
        for _ in range(2)
    )
    assert first == again
    assert first.evaluations <= 12
    assert first.best.ram <= default.ram <= first.baseline.ram


@settings(max_examples=examples(2))
@given(BLOCKS)
def test_what_is_closed_is_never_worse_than_any_other_strategy(blocks):
    model = network([*blocks, "pool"])
    module, ports = to_relax(model), port_names(model)
    limits = Limits(evaluations=60)
    ours = search(module, "m", TARGET, *ports, limits=limits)
    assert ours.closed
    for strategy in STRATEGIES:
        assert ours.best.ram <= search(module, "m", TARGET, *ports, strategy=strategy, limits=limits).best.ram, strategy


def test_what_is_known_of_other_models_is_tried_first_and_changes_no_closed_result():
    model = network(["conv", "bn", "Relu", "residual", "pool"])
    module, ports = to_relax(model), port_names(model)
    plain = search(module, "m", TARGET, *ports)
    told = search(module, "m", TARGET, *ports, knowledge=load_knowledge())
    assert plain.closed and told.closed
    assert told.best == plain.best  # of sequences with one footprint, the first tried is chosen
