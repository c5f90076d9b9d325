"""Test a compilation from model to library and all its files."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import onnx
import pytest

from passfit import api, compilation
from passfit.errors import ModelError, NumericError, PlanError
from passfit.frontend import imported_model
from passfit.memory import ArenaPlan, Budget, plan_arena, read_plan, read_report, validate_plan
from passfit.passes.sequence.sequence import TVM_DEFAULT, Sequence, read_sequence, write_sequence
from passfit.program import Program
from passfit.report.arena.explain_flash import explain_flash
from passfit.search import find_sequence, first_library
from passfit.search.evaluate import tvm_default_code
from passfit.support.result_store import ResultStore
from passfit.targets import get_target, how_to_run
from passfit.verify import build_and_run, stored_cases

from ..models import NodeBuilder, save
from ..results import MEASURED, reproducible

pytestmark = pytest.mark.slow

BUDGET = Budget(ram=1 << 20)
HOST = get_target("x86-64")
native = pytest.mark.skipif(not how_to_run(HOST).native, reason="the host cannot run x86-64-v3")
FILES = {
    "cnn.h", "footprint.json", "golden.json", "inputs.bin", "libcnn.a", "manifest.json", "outputs.bin", "plan-before.json", "plan.json",
    "search.json", "sequence.json", "trajectory.json",
}  # fmt: skip


@pytest.fixture(scope="module")
def cnn(save_tiny_cnn: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_cnn(tmp_path_factory.mktemp("model") / "cnn.onnx")


@pytest.fixture(scope="module")
def compiled(cnn: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a first compilation after a search, into one with a file of the user's."""
    out = tmp_path_factory.mktemp("compiled")
    (out / "notes.txt").write_text("mine")
    api.compile_model(cnn, HOST, BUDGET, out=out)
    return out


@native
def test_everything_is_written_and_nothing_else(compiled: Path):
    assert {file.name for file in compiled.iterdir()} == FILES | {"libcnn.so", "notes.txt"}
    assert (compiled / "notes.txt").read_text() == "mine"
    assert all(file.stat().st_size for file in compiled.iterdir())


@native
def test_the_report_is_of_one_piece(compiled: Path):
    report = read_report(compiled / "footprint.json")
    best, measured = report.best, report.measured
    assert (report.model, report.target, report.budget, report.fits) == ("cnn", "x86-64", BUDGET, True)
    assert (
        best.ram == best.arena + best.workspace + best.stack
        and best.flash == best.weights + best.code
        and best.code > 0
    )
    assert best.floor <= best.bound <= best.arena <= report.baseline.arena
    assert measured.ran and measured.how == "native" and measured.max_rel_error <= 1e-4 and measured.latency_ms > 0
    assert abs(measured.ram - best.planned_ram) <= 0.02 * best.ram + 3 * measured.page
    assert 0 < measured.stack == best.stack < 1 << 20
    assert measured.error.reference == "double" and measured.error.library_to_double <= 1e-5
    assert report.baseline.code > 0 and report.baseline.flash == report.baseline.weights + report.baseline.code


@native
def test_the_plan_on_disk_is_valid_and_the_one_reported(compiled: Path):
    saved, report = read_plan(compiled / "plan.json"), read_report(compiled / "footprint.json")
    validate_plan(saved.program, saved.plan, saved.alignment)
    assert saved.plan.arena == report.best.arena
    assert f"CNN_ARENA_BYTES {report.best.arena}\n" in (compiled / "cnn.h").read_text()
    assert f"CNN_WORKSPACE_BYTES {report.best.workspace}\n" in (compiled / "cnn.h").read_text()


@native
def test_flash_is_explained_to_the_byte_by_the_files_own_names(compiled: Path, cnn: Path):
    saved, best = read_plan(compiled / "plan.json"), read_report(compiled / "footprint.json").best
    found = explain_flash(saved, best)
    assert sum(part.nbytes for part in found.weights) + found.alignment == best.weights
    assert found.rest is not None and 0 < found.rest < best.code
    assert sum(part.nbytes for part in found.code) + found.rest == best.code
    initializers = {tensor.name for tensor in onnx.load(cnn).graph.initializer}
    assert {name for part in found.weights for name in part.initializers} <= initializers
    assert all(part.initializers for part in found.weights if part.nbytes > 64)
    kernels = {step.kernel for _, step, _ in saved.program.calls()}
    assert kernels.intersection(part.name for part in found.code)


@native
def test_the_manifest_lists_the_files_with_their_digests(compiled: Path):
    import hashlib

    manifest = json.loads((compiled / "manifest.json").read_text())
    expected = (FILES | {"libcnn.so"}) - {"manifest.json"}
    assert set(manifest["files"]) == expected
    for name, digest in manifest["files"].items():
        assert hashlib.sha256((compiled / name).read_bytes()).hexdigest() == digest
    assert manifest["passes"] == list(read_sequence(compiled / "sequence.json").specs)
    assert manifest["io"] == {
        "name": "cnn",
        "inputs": [{"name": "image", "shape": [1, 3, 16, 16], "dtype": "float32"}],
        "outputs": [{"name": "scores", "shape": [1, 4], "dtype": "float32"}],
    }


@native
def test_the_plan_before_has_the_same_kernels_in_no_less_memory(compiled: Path):
    before, after = (read_plan(compiled / name) for name in ("plan-before.json", "plan.json"))
    assert before.plan.arena >= after.plan.arena and len(before.program.steps) >= len(after.program.steps)


@native
def test_a_plan_that_shares_and_splits_nothing_is_the_plan_before_loops_and_workspaces_too(cnn: Path, tmp_path: Path):
    build = NodeBuilder()
    states = build.node("LSTM", "x", build.weight(1, 16, 3), build.weight(1, 16, 4), hidden_size=4)
    write_sequence(Sequence.parse(TVM_DEFAULT), tmp_path / "sequence.json")
    for file in (cnn, save(build.model((5, 1, 3), build.node("Tanh", states)), tmp_path)):
        api.compile_model(file, HOST, out=tmp_path / file.stem, sequence=tmp_path / "sequence.json")
        before, after = (read_plan(tmp_path / file.stem / name) for name in ("plan-before.json", "plan.json"))
        used = [sum(step.workspaces for step in each.program.steps) for each in (before, after)]
        assert before.plan.arena == after.plan.arena and used[0] == used[1]
    assert used[0]  # the sums of the gates


@native
def test_compiling_again_gives_the_same_bytes(compiled: Path, cnn: Path, tmp_path: Path):
    api.compile_model(cnn, HOST, BUDGET, out=tmp_path / "deep" / "down")
    assert reproducible(tmp_path / "deep" / "down") == reproducible(compiled, MEASURED | {"notes.txt"})


@native
def test_replaying_a_sequence_gives_the_same_bytes(compiled: Path, cnn: Path, tmp_path: Path):
    api.compile_model(cnn, HOST, out=tmp_path, sequence=compiled / "sequence.json")
    # without a search there is nothing to tell of it, hence another manifest
    without = MEASURED | {"notes.txt", "search.json", "trajectory.json", "manifest.json"}
    assert reproducible(tmp_path, without) == reproducible(compiled, without)


def test_a_search_before_a_compilation_keeps_the_code_of_tvm_default(
    cnn: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    store = ResultStore(tmp_path / "store.jsonl")
    monkeypatch.setattr(tvm_default_code, "shared_store", lambda: store)
    first = api.optimize(cnn, HOST, out=tmp_path / "found", compiled_next=True)
    monkeypatch.setattr(tvm_default_code, "_build_and_count", lambda *_: 1 / 0)  # unknown unless it is kept
    report = api.compile_model(cnn, HOST, out=tmp_path / "out", sequence=tmp_path / "found" / "sequence.json")
    assert first.baseline.code is None and report.baseline.code


@native
def test_optimizing_predicts_what_compiling_reports(compiled: Path, cnn: Path, tmp_path: Path):
    predicted = api.optimize(cnn, HOST, BUDGET, out=tmp_path)
    found = read_report(compiled / "footprint.json")
    assert {file.name for file in tmp_path.iterdir()} == {
        "sequence.json",
        "footprint.json",
        "search.json",
        "trajectory.json",
    }
    assert predicted.best == replace(found.best, ram=found.best.planned_ram, stack=0, code=0, flash=found.best.weights)
    assert predicted.baseline == replace(found.baseline, code=None, flash=None)
    assert predicted.start == found.start
    assert not predicted.measured.ran and predicted.measured.how.startswith("not-run: ")
    assert (tmp_path / "sequence.json").read_bytes() == (compiled / "sequence.json").read_bytes()


@native
def test_a_wrong_result_leaves_earlier_results_as_they_were(
    compiled: Path, cnn: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    from passfit.verify.reference import Reference

    def shifted(self: Reference, *asked: object) -> dict:
        return {name: value + 1 for name, value in computed(self, *asked).items()}

    computed = Reference._run  # plain and optimised
    monkeypatch.setattr(Reference, "_run", shifted)
    monkeypatch.setenv("PASSFIT_STORE", "off")  # which keeps the right results
    (tmp_path / "footprint.json").write_text("earlier")
    with pytest.raises(NumericError, match="element"):
        api.compile_model(cnn, HOST, out=tmp_path, sequence=compiled / "sequence.json")
    told = json.loads((tmp_path / "comparison.json").read_text())
    assert [each["output"] for each in told["outputs"]] == ["scores"]
    assert reproducible(tmp_path, {"comparison.json"}) == {"footprint.json": b"earlier"}
    monkeypatch.undo()
    api.compile_model(cnn, HOST, out=tmp_path, sequence=compiled / "sequence.json")
    assert not (tmp_path / "comparison.json").exists()


def test_a_plan_that_breaks_a_rule_is_never_compiled(cnn: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from passfit.memory.validation import checked_plan

    def overlapping(program: Program, alignment: int) -> ArenaPlan:
        plan = plan_arena(program, alignment)
        return replace(plan, offsets=tuple(0 for _ in plan.offsets))

    monkeypatch.setattr(checked_plan, "plan_arena", overlapping)
    (tmp_path / "s.json").write_text('{"passes": ["legalize"]}')
    with pytest.raises(PlanError):
        api.compile_model(cnn, HOST, out=tmp_path / "out", sequence=tmp_path / "s.json")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("ram, fits", [(1 << 20, True), (1000, False)])
def test_a_model_over_its_budget_is_reported_not_refused(cnn: Path, tmp_path: Path, ram: int, fits: bool):
    assert api.optimize(cnn, get_target("rpi4"), Budget(ram=ram), out=tmp_path).fits is fits
    assert read_report(tmp_path / "footprint.json").fits is fits


def test_weights_count_as_ram_where_they_are_copied(cnn: Path, tmp_path: Path):
    target = get_target("rpi4")
    in_place, copied = (
        api.optimize(cnn, replace(target, weights=weights), out=tmp_path / weights).best
        for weights in ("in-place", "copied")
    )
    assert copied.ram == in_place.ram + copied.weights


def test_a_name_of_its_own(cnn: Path, tmp_path: Path):
    assert api.optimize(cnn, HOST, out=tmp_path, name="largest-model").model == "largest-model"


def test_a_canonical_model_imports_to_itself_and_keeps_where_it_started(cnn: Path, tmp_path: Path):
    api.import_model_file(cnn, tmp_path / "once" / "m.onnx")
    api.import_model_file(tmp_path / "once" / "m.onnx", tmp_path / "twice" / "m.onnx")
    once, twice = (tmp_path / folder / "m.onnx" for folder in ("once", "twice"))
    assert once.read_bytes() == twice.read_bytes()
    assert api.import_onnx(twice)[1] == api.import_onnx(cnn)[1]


def test_profiling_writes_each_pass_once(cnn: Path, tmp_path: Path):
    found = api.profile(cnn, HOST, tmp_path / "effects.json")
    assert json.loads((tmp_path / "effects.json").read_text()) == found
    specs = [each["spec"] for each in found["passes"]]
    assert len(specs) == len(set(specs)) > 10
    api.profile(cnn, HOST, tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "effects.json").read_bytes()


def test_what_cannot_be_compiled_by_any_sequence_is_one_refusal(
    cnn: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    from passfit.passes.graph.legalize import Legalize

    def broken(self: Legalize, module: object) -> object:
        raise ModelError("The operator 'sort' would need TVM's runtime on the device.", "Replace it.")

    monkeypatch.setenv("PASSFIT_STORE", "off")  # an earlier search may have kept what the pass does
    monkeypatch.setattr(Legalize, "apply", broken)
    with pytest.raises(ModelError, match="sort"):
        api.optimize(cnn, HOST, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


@native
def test_the_papers_metrics_are_reported(compiled: Path):
    measured = read_report(compiled / "footprint.json").measured
    assert measured.throughput > 0 and measured.compile_seconds > 0
    assert measured.energy.mj_per_run is None or measured.energy.mj_per_run > 0
    assert measured.energy.how.startswith("RAPL: " if measured.energy.mj_per_run else "absent: ")


@native
def test_a_search_that_is_interrupted_leaves_a_verified_library(
    cnn: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(first_library, "SECONDS", 0.0)

    def stop(what: str, done: int = 0, total: int = 0, found: str = "") -> None:
        if "first library" in found:
            raise KeyboardInterrupt

    imported = api.load(cnn)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "search.json").write_text("of another model")
    found = find_sequence.find_sequence

    def again_and_again(*arguments):
        while True:
            found(*arguments)

    monkeypatch.setattr(compilation, "find_sequence", again_and_again)
    with pytest.raises(KeyboardInterrupt):
        api.compile_imported(imported, HOST, out=tmp_path / "out", progress=stop)
    report = read_report(tmp_path / "out" / "footprint.json")
    assert report.measured.ran and report.measured.compile_seconds > 0
    assert {file.name for file in (tmp_path / "out").iterdir()} >= FILES - {"search.json", "trajectory.json"}
    assert not (tmp_path / "out" / "search.json").exists()
    api.compile_model(cnn, HOST, sequence=tmp_path / "out" / "sequence.json", out=tmp_path / "again")
    assert (tmp_path / "again" / "libcnn.a").read_bytes() == (tmp_path / "out" / "libcnn.a").read_bytes()


def test_the_library_of_a_large_model_is_built_after_its_cases(
    cnn: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Each takes the weights once more."""

    def cases_of(*_: object) -> list:
        time.sleep(0.5)
        (tmp_path / "cases").touch()
        return []

    def build_library(*_: object, **__: object) -> None:
        raise KeyError((tmp_path / "cases").exists())

    monkeypatch.setattr(imported_model, "LARGE", 1)
    monkeypatch.setattr(stored_cases, "cases_of", cases_of)
    monkeypatch.setattr(build_and_run, "build_library", build_library)
    with pytest.raises(KeyError, match="True"):
        api.compile_imported(api.load(cnn), HOST, out=tmp_path / "out", sequence=Sequence.parse(TVM_DEFAULT))
