"""Test staleness: a result of another model or other params is never judged, any other always."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace

import pytest

from passfit.artifacts.locked import Lock
from passfit.artifacts.origin import target_digest, tune_record
from passfit.frontend.source.model_record import model_record
from passfit.gate import run_gate
from passfit.gate.stale import why_stale
from passfit.params.params import Params, load_params
from passfit.targets import get_target
from passfit.tuning.database import TunedKernel, empty, write_database

from ..frontend.source.test_side_files import save_split
from .samples import KIB, PARAMS, Repo


def verdict(repo: Repo) -> tuple[int, str]:
    result = run_gate(repo.path)
    return result.exit_code, result.text


def in_dvc(repo: Repo) -> None:
    """Leave the result as the stages of dvc.yaml do: imported, searched and compiled in three folders."""
    repo.footprint()
    folder = repo.path / "out" / "compile" / "a" / "x86-64"
    source = repo.path / "a.onnx"
    (repo.path / "dvc.yaml").write_text("stages: {}\n")
    canonical = hashlib.sha256(b"canonical").hexdigest()
    record = model_record(source, "a.onnx")
    repo.write(repo.path / "out/models/a/origin.json", {"canonical": canonical, "made_from": record})
    for file in ("search.json", "manifest.json"):
        data = json.loads((folder / file).read_text())
        data["made_from"]["model"] = canonical
        repo.write(folder / file, data)
    searched = repo.path / "out/optimize/a/x86-64"
    searched.mkdir(parents=True)
    (folder / "search.json").rename(searched / "search.json")
    repo.write(searched / "sequence.json", {"passes": [], "exact": True})


@pytest.fixture(params=["by hand", "by DVC"])
def made(repo, request) -> Repo:
    (repo.footprint if request.param == "by hand" else lambda: in_dvc(repo))()
    assert verdict(repo)[0] == 0
    return repo


@pytest.mark.parametrize(
    ("params", "said"),
    [
        (PARAMS.replace("a.onnx}", "a.onnx, shapes: {x: [1, 2]}}"), "shapes"),
        (PARAMS.replace("a.onnx}", "a.onnx, fix: {x: 1}}"), "fix"),
        (PARAMS.replace("a.onnx}", "a.onnx, outputs: [y]}"), "outputs"),
        (PARAMS.replace("a.onnx}", "a.onnx, outputs: {y: argmax}}"), "outputs, forms"),
        (PARAMS.replace("a.onnx}", "a.onnx, inputs: {x: uint8}}"), "inputs"),
        (PARAMS.replace("a.onnx}", "a.onnx, io: int8}"), "io"),
        (PARAMS.replace("a.onnx}", "'pypi:p==1!a.onnx'}"), "source"),
        (PARAMS + "search: {strategy: greedy}", "search.strategy"),
        (PARAMS + "search: {max-extra-compute: null}", "search.max-extra-compute"),
        (PARAMS + "search: {max-slowdown: null}", "search.max-slowdown"),
        (PARAMS + "search: {until: fits}", "search.until"),
        (PARAMS + "search: {lossy: true}", "search.lossy"),
        (PARAMS + "verify: {cases: 4}", "verify.cases"),
        (PARAMS.replace("x86-64: {", "x86-64: {threads: 2, "), "facts, threads or opt of the target"),
        (PARAMS.replace("x86-64: {", "x86-64: {opt: size, "), "facts, threads or opt of the target"),
        (PARAMS.replace("x86-64: {", "x86-64: {index-checks: clamp, "), "index-checks"),
    ],
)
def test_other_params_are_found(made, params, said):
    made.params(params)
    code, text = verdict(made)
    assert code == 2
    assert "ERROR a @ x86-64: stale: " in text and said in text and "dvc repro" in text


@pytest.mark.parametrize(
    "params",
    [
        PARAMS.replace("600KiB", "601KiB"),
        PARAMS + "search: {max_error: 0.5, workers: 1}",
        PARAMS + "tune: {seed: 3}\ntrack: {experiment: other}",
    ],
)
def test_params_that_no_step_reads_are_no_matter(made, params):
    made.params(params)
    assert verdict(made)[0] == 0


def test_a_result_from_before_ports_had_forms_is_not_stale(repo):
    manifest = repo.footprint().with_name("manifest.json")
    recorded = json.loads(manifest.read_text())
    for key in ("outputs", "inputs", "forms", "io"):
        del recorded["made_from"][key]
    manifest.write_text(json.dumps(recorded))
    repo.params(PARAMS.replace("a.onnx}", "a.onnx, io: float, inputs: {x: {}}}"))
    assert verdict(repo)[0] == 0


def test_a_budget_counts_at_once(made):
    made.params(PARAMS.replace("600KiB", "499KiB"))
    assert verdict(made)[0] == 1


def test_a_budget_is_read_by_a_search_that_stops_when_it_fits(repo):
    repo.params(PARAMS + "search: {until: fits}")
    repo.footprint()
    assert verdict(repo)[0] == 0
    repo.params(PARAMS.replace("600KiB", "601KiB") + "search: {until: fits}")
    code, text = verdict(repo)
    assert code == 2 and "the budget to stop at" in text


def test_another_model_file_is_found_by_its_content(made):
    (made.path / "a.onnx").write_bytes(b"another")
    code, text = verdict(made)
    assert code == 2 and "stale: the model differs: model changed" in text


def test_a_model_file_that_was_only_touched_is_the_same(made):
    (made.path / "a.onnx").write_bytes((made.path / "a.onnx").read_bytes())
    assert verdict(made)[0] == 0


def test_a_model_file_that_is_not_there_is_an_error(made):
    (made.path / "a.onnx").unlink()
    code, text = verdict(made)
    assert code == 2 and "dvc pull" in text


@pytest.mark.parametrize("location", ["a.onnx.data", "weights/a"])
def test_a_changed_side_file_is_found(repo, location):
    save_split(repo.path / "a.onnx", 1.0, location)
    repo.footprint()
    assert verdict(repo)[0] == 0
    save_split(repo.path / "a.onnx", 2.0, location)
    code, text = verdict(repo)
    assert code == 2 and "stale: the model differs: model changed" in text
    (repo.path / location).unlink()
    code, text = verdict(repo)
    assert code == 2 and f"stale: {location}, of the model, cannot be read" in text and "dvc pull" in text


def test_a_side_file_that_dvc_does_not_watch_is_an_error(repo):
    save_split(repo.path / "a.onnx", 1.0, "w")
    in_dvc(repo)
    assert verdict(repo)[0] == 0
    (repo.path / "dvc.yaml").write_text("stages: {import: {foreach: {a: a.onnx}, do: {deps: ['${item}']}}}\n")
    code, text = verdict(repo)
    assert code == 2 and "'w', which dvc.yaml does not watch" in text and "`passfit add a.onnx --name a`" in text


@pytest.mark.parametrize("file", ["out/models/a/origin.json", "out/optimize/a/x86-64/search.json"])
def test_with_dvc_a_missing_record_is_an_error(repo, file):
    in_dvc(repo)
    (repo.path / file).unlink()
    code, text = verdict(repo)
    assert code == 2 and file in text and "dvc pull" in text


def test_a_model_imported_after_the_library_was_compiled(repo):
    in_dvc(repo)
    file = repo.path / "out/models/a/origin.json"
    repo.write(file, json.loads(file.read_text()) | {"canonical": "another"})
    code, text = verdict(repo)
    assert code == 2 and "the imported model differs" in text


def test_a_sequence_found_after_the_library_was_compiled(repo):
    in_dvc(repo)
    repo.write(repo.path / "out/optimize/a/x86-64/sequence.json", {"passes": ["fold-constant"], "exact": True})
    code, text = verdict(repo)
    assert code == 2 and "its sequence differs" in text


def test_a_simpler_plan_that_was_delivered_belongs_to_the_sequence_asked_for(repo):
    in_dvc(repo)
    manifest = repo.path / "out/compile/a/x86-64/manifest.json"
    made = json.loads(manifest.read_text())
    repo.write(repo.path / "out/optimize/a/x86-64/sequence.json", {"passes": ["split-rows"], "exact": True})
    repo.write(manifest, made | {"asked": {"passes": ["split-rows"]}})
    assert verdict(repo)[0] == 0
    repo.write(manifest, made | {"asked": {"passes": ["fold-constant"]}})
    assert verdict(repo)[0] == 2


@pytest.mark.parametrize(
    ("before", "after", "code"),
    [
        ("{seconds: 0, seed: 1}", "{seconds: 0, seed: 2}", 0),
        ("{seconds: 0}", "{seconds: 60}", 2),
        ("{seconds: 60}", "{seconds: 0}", 2),
        ("{seconds: 60, seed: 1}", "{seconds: 60, seed: 2}", 2),
    ],
)
def test_a_tuning_with_other_params_is_found(repo, before, after, code):
    repo.params(f"{PARAMS}tune: {before}\n")
    in_dvc(repo)
    folder = repo.path / "out/tune/a/x86-64"
    repo.write(folder / "asked.json", tune_record(load_params(repo.path / "params.yaml"), "x86-64"))
    write_database(empty(get_target("x86-64")), folder / "tuning.json")
    assert verdict(repo)[0] == 0
    repo.params(f"{PARAMS}tune: {after}\n")
    assert verdict(repo)[0] == code
    (folder / "asked.json").unlink()
    assert verdict(repo)[0] == 2


@pytest.mark.parametrize(
    ("deps", "seconds", "code"), [([], 0, 0), ([], 60, 2), (["tuning.json"], 0, 2), (["tuning.json"], 60, 0)]
)
def test_a_tuning_counts_for_a_library_whose_stage_reads_it(repo, deps, seconds, code):
    """What a stage that is gone left on disk is neither compared nor missed."""
    in_dvc(repo)
    folder = "out/tune/a/x86-64"
    made = tune_record(Params.model_validate({"targets": {"x86-64": {}}, "tune": {"seconds": 60}}), "x86-64")
    repo.write(repo.path / folder / "asked.json", made)
    write_database(empty(get_target("x86-64")), repo.path / folder / "tuning.json")
    lock = Lock({}, {"compile@a-x86-64": {f"{folder}/{name}": {} for name in deps}})
    repo.params(f"{PARAMS}tune: {{seconds: {seconds}}}\n")
    why = why_stale(repo.path, load_params(repo.path / "params.yaml"), "a", get_target("x86-64"), lock)
    assert bool(why) == (code == 2) and (not why or "seconds" in why)


def test_a_tuning_found_after_the_library_was_compiled(repo):
    in_dvc(repo)
    folder = repo.path / "out/tune/a/x86-64"
    repo.write(folder / "asked.json", tune_record(load_params(repo.path / "params.yaml"), "x86-64"))
    choice = TunedKernel("f", ["float32 1"], 1, 9, 7, "tile{along=1,vectors=2,rows=1x6}")
    write_database(replace(empty(get_target("x86-64")), kernels=(choice,)), folder / "tuning.json")
    code, text = verdict(repo)
    assert code == 2 and "compiled before out/tune/a/x86-64/tuning.json" in text


@pytest.mark.parametrize("content", ["{}", "{", "[]", '{"made_from": 3}'])
def test_a_result_that_does_not_say_is_not_judged(repo, content):
    repo.footprint(ram=1 << 50)
    (repo.path / "out/compile/a/x86-64/manifest.json").write_text(content)
    code, text = verdict(repo)
    assert code == 2 and "ERROR a @ x86-64" in text and "manifest.json" in text and "FAIL" not in text


def test_one_stale_result_does_not_hide_another_over_budget(repo):
    repo.params(PARAMS.replace("a.onnx}", "a.onnx}\n  b: {source: b.onnx}"))
    repo.footprint("a")
    repo.footprint("b", ram=700 * KIB)
    (repo.path / "a.onnx").write_bytes(b"another")
    code, text = verdict(repo)
    assert code == 2 and "ERROR a @ x86-64" in text and "FAIL  b @ x86-64" in text


def test_a_budget_of_a_memory_is_an_input_of_plans():
    target = get_target("stm32f746")
    assert (
        target_digest(target.with_rooms({"dtcm": 1024}))
        != target_digest(target)
        == target_digest(target.with_rooms({}))
    )
