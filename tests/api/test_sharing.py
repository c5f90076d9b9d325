"""Test libraries with shared memory: concatenations, windows and residual sums, compiled, run, compared."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from passfit import api
from passfit.memory import FootprintReport, read_plan
from passfit.targets import get_target, how_to_run

from ..models import model_of

pytestmark = pytest.mark.slow

HOST = get_target("x86-64")
native = pytest.mark.skipif(not how_to_run(HOST).native, reason="the host cannot run x86-64-v3")
DOWN = ("legalize", "fold-constant", "fuse-operators")


def branches() -> onnx.ModelProto:
    """Make two windows on one tensor, a dense block over unaligned places, a residual sum, two outputs."""
    generator = np.random.default_rng(0)
    weights: list[onnx.TensorProto] = []

    def constant(value: np.ndarray) -> str:
        weights.append(numpy_helper.from_array(value, f"w{len(weights)}"))
        return weights[-1].name

    def conv(x: str, taken: int, given: int, y: str, size: int = 3) -> onnx.NodeProto:
        weight = generator.standard_normal((given, taken, size, size)).astype(np.float32) / (taken * size)
        return helper.make_node("Conv", [x, constant(weight)], [y], pads=[size // 2] * 4)

    nodes = [
        conv("x", 3, 10, "wide"),
        helper.make_node("Split", ["wide", constant(np.array([3, 7]))], ["left", "right"], axis=1),
        conv("left", 3, 3, "left 3"),
        conv("right", 7, 5, "right 5", size=1),
        helper.make_node("Concat", ["left 3", "right 5"], ["eight"], axis=1),
        conv("eight", 8, 3, "three"),
        helper.make_node("Concat", ["eight", "three"], ["eleven"], axis=1),
        conv("eleven", 11, 11, "hidden"),
        helper.make_node("Relu", ["hidden"], ["positive"]),
        conv("positive", 11, 11, "again"),
        helper.make_node("Add", ["again", "eleven"], ["sum"]),
        conv("sum", 11, 4, "y"),
        helper.make_node("ReduceMean", ["y"], ["z"], axes=[2, 3]),
    ]
    # odd extents: no part of a concatenation but the first is aligned to more than its element
    return model_of(nodes, {"x": [1, 3, 21, 23]}, ["y", "z"], weights, name="branches")


def compiled(folder: Path, *passes: str) -> FootprintReport:
    folder.mkdir()
    onnx.save(branches(), folder / "branches.onnx")
    (folder / "sequence.json").write_text(json.dumps({"passes": [*DOWN, *passes]}))
    return api.compile_model(folder / "branches.onnx", HOST, out=folder / "out", sequence=folder / "sequence.json")


@native
def test_a_library_whose_tensors_share_memory_agrees_and_needs_less(tmp_path: Path):
    plain, shared = compiled(tmp_path / "plain", "order"), compiled(tmp_path / "shared", "share", "order")
    assert shared.best.kernels < plain.best.kernels
    assert shared.best.arena < plain.best.arena
    for report in (plain, shared):
        assert report.measured.ran and report.measured.max_rel_error <= 1e-5
    saved = read_plan(tmp_path / "shared" / "out" / "plan.json")
    assert any(tensor.offset % 64 for tensor in saved.program.tensors)
    assert any("in_place" in step.kernel for step in saved.program.steps)


@native
def test_sharing_again_gives_the_same_bytes(tmp_path: Path):
    for name in ("one", "two"):
        compiled(tmp_path / name, "share", "order")
    for file in ("plan.json", "branches.h", "libbranches.a"):
        assert (tmp_path / "one" / "out" / file).read_bytes() == (tmp_path / "two" / "out" / file).read_bytes()
