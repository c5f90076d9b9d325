"""Weights are named after initializers of the file, whatever the import and the passes made of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from passfit.frontend.imported_model import load
from passfit.passes.sequence.name_weights import name_weights
from passfit.passes.sequence.replay import lower_by_sequence
from passfit.passes.sequence.sequence import Sequence
from passfit.program import Program

from ...models import model_of

RANDOM = np.random.default_rng(0)
FUSED = ("simplify", "legalize", "fold-constant", "fuse-operators")


def draw(*shape: int) -> np.ndarray:
    return RANDOM.normal(size=shape).astype(np.float32)


def named(folder: Path, nodes: list[onnx.NodeProto], constants: dict[str, np.ndarray], *passes: str) -> Program:
    """Lower a model of one input `x` of 1x3x8x8 and one output `y`, and name its weights."""
    onnx.save(model_of(nodes, {"x": (1, 3, 8, 8)}, ["y"], constants), folder / "m.onnx")
    imported = load(folder / "m.onnx")
    lowered = lower_by_sequence(Sequence.parse(passes or FUSED), imported.graph, imported.onnx, "m")
    program = name_weights(lowered.program, lowered.weights, imported.onnx, imported.given)
    assert len({weight.name for weight in program.weights}) == len(program.weights)
    assert {each for weight in program.weights for each in weight.initializers} <= set(constants)
    return program


def largest(program: Program) -> tuple[str, tuple[str, ...]]:
    weight = max(program.weights, key=lambda each: each.nbytes)
    return weight.name, weight.initializers


def test_a_weight_as_in_the_file_has_its_name(tmp_path: Path):
    conv = helper.make_node("Conv", ["x", "w", "b"], ["y"], name="conv")
    program = named(tmp_path, [conv], {"w": draw(4, 3, 3, 3), "b": draw(4)})
    assert {weight.name: weight.initializers for weight in program.weights} == {"w": ("w",), "b": ("b",)}


def test_one_weight_of_two_equal_initializers_names_both(tmp_path: Path):
    nodes = [
        helper.make_node("Add", ["x", "one"], ["h"], name="first"),
        helper.make_node("Sqrt", ["h"], ["s"], name="between"),
        helper.make_node("Mul", ["s", "same"], ["y"], name="second"),
    ]
    same = draw(8, 8)
    program = named(tmp_path, nodes, {"one": same, "same": same.copy()}, "legalize")
    assert largest(program) == ("one", ("one", "same"))


def test_a_folded_weight_comes_from_the_one_it_was(tmp_path: Path):
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["h"], name="conv"),
        helper.make_node("BatchNormalization", ["h", "scale", "shift", "mean", "var"], ["y"], name="bn"),
    ]
    vectors = {name: draw(4) for name in ("scale", "shift", "mean")}
    program = named(tmp_path, nodes, {"w": draw(4, 3, 3, 3), **vectors, "var": np.abs(draw(4)) + 1})
    assert largest(program) == ("w", ("w",))
    rest = [set(weight.initializers) for weight in program.weights if weight.name != "w"]
    assert rest and all(names <= {"scale", "shift", "mean", "var"} for names in rest)


@pytest.mark.parametrize("operator", ["Transpose", "Neg"])
def test_a_constant_that_the_import_folds_comes_from_its_operands(tmp_path: Path, operator: str):
    nodes = [
        helper.make_node(operator, ["raw"], ["w"], name="prepare"),
        helper.make_node("MatMul", ["x", "w"], ["y"], name="product"),
    ]
    assert largest(named(tmp_path, nodes, {"raw": draw(8, 8)})) == ("raw", ("raw",))


def test_one_weight_of_convolutions_computed_together_names_all(tmp_path: Path):
    nodes = [
        helper.make_node("Conv", ["x", "a"], ["p"], name="left"),
        helper.make_node("Conv", ["x", "b"], ["q"], name="right"),
        helper.make_node("Concat", ["p", "q"], ["y"], name="join", axis=1),
    ]
    passes = ("simplify", "combine-parallel-conv2d", "legalize", "fold-constant", "fuse-operators")
    program = named(tmp_path, nodes, {"a": draw(6, 3, 3, 3), "b": draw(5, 3, 3, 3)}, *passes)
    assert [(weight.nbytes, set(weight.initializers)) for weight in program.weights] == [(4 * 27 * 11, {"a", "b"})]


def test_a_constant_of_no_initializer_is_named_after_its_node(tmp_path: Path):
    node = helper.make_node("Mod", ["x", "k"], ["y"], name="remainder", fmod=1)
    program = named(tmp_path, [node], {"k": draw(1)}, "legalize")
    assert all(weight.initializers or weight.name.startswith("remainder") for weight in program.weights)
