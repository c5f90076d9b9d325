"""Break a part of passfit on purpose: the library is refused, or another plan delivered, and the part is named."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from onnx import numpy_helper

from passfit import api
from passfit.errors import NumericError, PlanError
from passfit.frontend import canonicalise
from passfit.frontend.canonical import rewrites
from passfit.gate.verdicts import remarks
from passfit.passes.program.split import SplitRows
from passfit.search import first_library
from passfit.support.strictness import STRICT
from passfit.targets import get_target, how_to_run
from passfit.verify import build_plan

from ..models import NodeBuilder, save

HOST = get_target("x86-64")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not how_to_run(HOST).native, reason="the host cannot run x86-64-v3"),
]
WHOLE = ("legalize", "fold-constant", "fuse-operators", "order{by=given}")
SPLIT = (*WHOLE, "split-rows{steps=0-1}", "order{by=given}")


@pytest.fixture
def network(tmp_path: Path) -> Path:
    build = NodeBuilder()
    bias = build.node("Abs", build.constant(np.linspace(-1, 1, 8, dtype=np.float32).reshape(1, 8, 1, 1)))
    first = build.node("Relu", build.node("Conv", "x", build.weight(8, 3, 3, 3), pads=[1, 1, 1, 1]))
    second = build.node("Conv", build.node("Add", first, bias), build.weight(4, 8, 3, 3), pads=[1, 1, 1, 1])
    return save(build.model([1, 3, 12, 12], build.node("Mean", second, build.node("Sigmoid", second))), tmp_path)


def compiled(model: Path, specs: tuple[str, ...] = WHOLE) -> api.FootprintReport:
    sequence = model.with_name("sequence.json")
    sequence.write_text(json.dumps({"passes": list(specs)}))
    return api.compile_model(model, HOST, out=model.with_name("out"), sequence=sequence)


@pytest.mark.fault("the import", "it changes a constant", "no library; the first value that differs is named")
def test_a_wrong_fold_is_refused_and_named(network: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    right: Callable = canonicalise.fold

    def wrong(model):
        folded = right(model)
        for tensor in folded.graph.initializer:
            if list(tensor.dims) == [1, 8, 1, 1]:
                tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor) + np.float32(1), tensor.name))
        return folded

    monkeypatch.setattr(canonicalise, "fold", wrong)
    monkeypatch.setenv(STRICT, "0")
    with pytest.raises(
        NumericError, match=r"The import is at fault: it changes the value 't\d+_0', made by the Add node"
    ):
        compiled(network)
    assert not network.with_name("out").exists() or not list(network.with_name("out").glob("*.a"))


def test_a_wrong_rewrite_is_refused_and_named(network: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(rewrites.RULES, "Mean", rewrites.RULES["Sum"])
    monkeypatch.setenv(STRICT, "0")
    with pytest.raises(NumericError, match="The import is at fault: it changes the value 't"):
        compiled(network)


def broken(right: Callable) -> Callable:
    """Break a split: its kernels read other weights."""

    def apply(self: SplitRows, lowered):
        split = right(self, lowered)
        return replace(split, weights=tuple(np.flip(value).copy() for value in split.weights))

    return apply


@pytest.mark.fault(
    "a pass", "it returns wrong code", "the library is refused, the next best plan delivered, the defect named"
)
def test_a_wrong_split_costs_that_split_alone(network: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SplitRows, "apply", broken(SplitRows.apply))
    with pytest.raises(NumericError, match="differ in output"):
        compiled(network, SPLIT)  # tests are strict
    monkeypatch.setenv(STRICT, "0")
    report = compiled(network, SPLIT)
    (defect,) = report.defects
    assert (
        defect.kind == "wrong" and defect.passes == ("split-rows{steps=0-1}",) and "differ in output" in defect.reason
    )
    assert json.loads((network.with_name("out") / "sequence.json").read_text())["passes"] == [*WHOLE, "order{by=given}"]
    assert report.measured.verified_by == "onnxruntime"
    manifest = json.loads((network.with_name("out") / "manifest.json").read_text())
    assert manifest["passes"] == [*WHOLE, "order{by=given}"] and manifest["asked"] == {"passes": list(SPLIT)}
    (remark,) = remarks({("model", "x86-64"): report})
    assert "since the one with split-rows{steps=0-1} computes wrong" in remark


@pytest.mark.fault("a pass", "it fails while the library is built", "the next plan is delivered, the defect named")
def test_a_kernel_that_crashes_the_compiler_costs_its_plan_alone(
    network: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crashing(self: SplitRows, lowered):
        raise ValueError("IntImm literal exceeds int32")

    monkeypatch.setattr(SplitRows, "apply", crashing)
    with pytest.raises(ValueError, match="IntImm"):
        compiled(network, SPLIT)
    monkeypatch.setenv(STRICT, "0")
    (defect,) = compiled(network, SPLIT).defects
    assert (defect.kind, defect.reason) == ("crash", "ValueError: IntImm literal exceeds int32")


@pytest.mark.fault("the planner", "two buffers overlap", "the independent check refuses the plan; another is delivered")
def test_a_wrong_plan_costs_that_plan_alone(network: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    right, tried = build_plan.checked_plan, []

    def wrong(program, target, workspace):
        plan = right(program, target, workspace)
        tried.append(program)
        return replace(plan, offsets=tuple(0 for _ in plan.offsets)) if len(tried) == 1 else plan

    monkeypatch.setattr(build_plan, "checked_plan", wrong)
    monkeypatch.setenv(STRICT, "0")
    (defect,) = compiled(network, SPLIT).defects
    assert defect.kind == "wrong" and defect.passes == ("split-rows{steps=0-1}",)


def test_a_first_library_does_not_stand_in_the_way_of_another_plan(
    network: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    right, broken_here = build_plan.checked_plan, os.getpid()
    tried = []

    def wrong(program, target, workspace):
        plan = right(program, target, workspace)
        tried.append(program)
        return (
            replace(plan, offsets=tuple(0 for _ in plan.offsets))
            if os.getpid() == broken_here and len(tried) == 1
            else plan
        )

    monkeypatch.setattr(build_plan, "checked_plan", wrong)
    monkeypatch.setattr(first_library, "SECONDS", 0.0)
    monkeypatch.setenv(STRICT, "0")
    out = network.with_name("out")
    (defect,) = api.compile_model(
        network, HOST, out=out, search=api.SearchSettings(evaluations=4, max_extra_compute=None)
    ).defects
    assert defect.kind == "wrong"
    assert all(file.is_file() for file in out.iterdir())


def test_where_no_plan_verifies_the_first_error_stays(network: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(program, target, workspace):
        raise PlanError("buffers 1 and 2 overlap")

    monkeypatch.setattr(build_plan, "checked_plan", refused)
    monkeypatch.setenv(STRICT, "0")
    with pytest.raises(PlanError, match="buffers 1 and 2"):
        compiled(network, SPLIT)
