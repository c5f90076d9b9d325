"""Test results changed by hand: no file of a result, and no copy of it, passes in another form than it was made in."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest

from passfit.artifacts.locked import is_recorded
from passfit.gate import run_gate
from passfit.memory import read_report
from passfit.memory.files.footprint_file import text_for_git
from passfit.params.params import load_params
from passfit.support.digests import places_digest

from .samples import KIB, PARAMS, Repo, digests, footprint

FOLDER = "out/compile/a/x86-64"
FILES = ("footprint.json", "liba.a", "a.h", "sequence.json")


def verdict(repo: Repo) -> tuple[int, str]:
    result = run_gate(repo.path)
    return result.exit_code, result.text


@pytest.fixture
def made(repo: Repo) -> Repo:
    """Make a result of several files, all in its manifest, with its copy for git."""
    folder = repo.footprint().parent
    for name in FILES[1:]:
        (folder / name).write_text('{"passes": []}')
    manifest = json.loads((folder / "manifest.json").read_text())
    repo.write(folder / "manifest.json", manifest | {"files": digests(*(folder / name for name in FILES))})
    repo.keep()
    assert verdict(repo)[0] == 0
    return repo


@pytest.mark.parametrize("name", FILES)
def test_every_file_is_compared_with_the_manifest(made: Repo, name: str):
    file = made.path / FOLDER / name
    # the footprint stays valid, and far below the budget
    content = json.dumps(footprint(ram=KIB)).encode() if name == "footprint.json" else b'{"passes":  []}'
    file.write_bytes(content)
    code, text = verdict(made)
    assert code == 2 and f"ERROR a @ x86-64: altered: {FOLDER}/{name} differs from its sha256 in manifest.json" in text
    assert "dvc repro" in text and "  altered  " in text
    if name != "footprint.json":
        file.unlink()
        code, text = verdict(made)
        assert code == 2 and f"{FOLDER}/{name} is missing, which manifest.json lists" in text


@pytest.mark.parametrize("files", [None, [], {}, {"liba.a": "0"}])
def test_a_manifest_that_does_not_cover_the_footprint_vouches_for_nothing(made: Repo, files: object):
    manifest = made.path / FOLDER / "manifest.json"
    made.write(manifest, json.loads(manifest.read_text()) | {"files": files})
    code, text = verdict(made)
    assert code == 2 and f"{FOLDER}/manifest.json does not list footprint.json" in text


def test_the_copy_for_git_is_that_of_the_result(made: Repo):
    made.keep(ram=499 * KIB)
    code, text = verdict(made)
    assert (
        code == 2
        and f"altered: footprints/a/x86-64.json is not a copy of {FOLDER}/footprint.json. Run `dvc repro`" in text
    )
    (made.path / "footprints/a/x86-64.json").write_text("{")
    code, text = verdict(made)
    assert code == 2 and "footprints/a/x86-64.json" in text and "not JSON" in text


def test_a_copy_without_times_and_errors_is_one(made: Repo):
    report = read_report(made.path / FOLDER / "footprint.json")
    copy = made.path / "footprints/a/x86-64.json"
    copy.write_text(text_for_git(report))
    assert verdict(made)[0] == 0
    copy.write_text(text_for_git(replace(report, measured=replace(report.measured, stack=1))))
    assert verdict(made)[0] == 2


def test_another_budget_alone_alters_no_copy(made: Repo):
    copy = made.path / "footprints/a/x86-64.json"
    made.write(copy, json.loads(copy.read_text()) | {"budget": {"ram": 499 * KIB, "flash": None}, "fits": False})
    assert verdict(made)[0] == 0


def test_one_altered_result_does_not_hide_another_over_budget(made: Repo):
    made.params(PARAMS.replace("a.onnx}", "a.onnx}\n  b: {source: b.onnx}"))
    made.footprint("b", ram=700 * KIB)
    (made.path / FOLDER / "liba.a").write_text("another")
    code, text = verdict(made)
    assert code == 2 and "ERROR a @ x86-64" in text and "FAIL  b @ x86-64" in text
    assert load_params(made.path / "params.yaml").models.keys() == {"a", "b"}


def test_a_library_that_dvc_did_not_make_is_not_judged(made: Repo):
    (made.path / "dvc.yaml").write_text("stages: {compile: {cmd: make}}\n")
    made.write(made.path / "out/models/a/origin.json", {"canonical": "0", "made_from": {}})
    code, text = verdict(made)
    assert code == 2 and f"dvc.lock does not record {FOLDER}: `dvc repro` did not make it" in text


@pytest.mark.parametrize("name", ["given.onnx", "model.onnx"])
def test_a_missing_result_that_dvc_recorded_is_no_green(made: Repo, name: str):
    """The library was compared with these files."""
    (made.path / "dvc.yaml").write_text("stages: {compile: {cmd: make}}\n")
    made.write(
        made.path / "out/optimize/a/x86-64/search.json", json.loads((made.path / FOLDER / "search.json").read_text())
    )
    models = [f"out/models/a/{each}" for each in ("given.onnx", "model.onnx", "origin.json")]
    for each in models:
        made.write(made.path / each, {"canonical": "0", "made_from": {}})
    copy = "footprints/a/x86-64.json"
    outs = [{"path": path} for path in (FOLDER, *models, copy)]  # without a digest: as DVC 2 recorded them
    made.write(made.path / "dvc.lock", {"stages": {"all": {"outs": outs}}})
    assert verdict(made)[0] == 0
    (made.path / "out/models/a" / name).unlink()
    code, text = verdict(made)
    assert (
        code == 2
        and f"altered: out/models/a/{name} is missing, which dvc.lock records; `dvc pull` fetches it. Run" in text
    )
    made.write(made.path / "out/models/a" / name, {"canonical": "0", "made_from": {}})
    (made.path / copy).unlink()
    code, text = verdict(made)
    assert code == 2 and f"altered: {copy} is missing, which dvc.lock records. Run `dvc repro`" in text


def test_a_cell_is_compared_with_its_record_and_this_with_dvc_lock(made: Repo):
    """So one altered cell of hundreds is named, though DVC has one digest for all."""
    record = {
        step: {"writes": places_digest([Path(f"out/{step}/a/x86-64")], made.path)} for step in ("optimize", "compile")
    }
    made.write(made.path / "out/cells/a/x86-64.json", record)
    (made.path / "dvc.yaml").write_text("stages: {cells: {cmd: make}, import: {cmd: make}}\n")
    content = (made.path / "out/cells/a/x86-64.json").read_bytes()
    listing = json.dumps([{"md5": hashlib.md5(content).hexdigest(), "relpath": "a/x86-64.json"}])
    cells = {"path": "out/cells", "hash": "md5", "md5": f"{hashlib.md5(listing.encode()).hexdigest()}.dir"}
    # an entry of before the stage cells was there
    earlier = {"path": FOLDER, "hash": "md5", "md5": "0.dir"}
    made.write(
        made.path / "dvc.lock", {"stages": {"cells": {"outs": [cells]}, "compile@a-x86-64": {"outs": [earlier]}}}
    )
    assert "altered" not in verdict(made)[1]
    (made.path / FOLDER / "manifest.json").write_text((made.path / FOLDER / "manifest.json").read_text() + "\n")
    assert f"altered: {FOLDER} differs from its digest in out/cells/a/x86-64.json" in verdict(made)[1]
    record["compile"]["writes"] = places_digest([Path(FOLDER)], made.path)
    made.write(made.path / "out/cells/a/x86-64.json", record)
    assert "altered: out/cells differs from its md5 in dvc.lock" in verdict(made)[1]


def test_folders_are_compared_as_dvc_records_them(tmp_path: Path):
    """The digests are DVC's own, of this folder."""
    for name, content in (("libü.a", "1\n"), ("sub/b", "2\n"), (".gitignore", "3\n")):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content)
    listing = [
        {"relpath": ".gitignore", "md5": "6d7fce9fee471194aa8b5b6e47267f03"},
        {"relpath": "sub/b", "md5": "26ab0db90d72e28ad0ba1e22ee510510"},
        {"relpath": "libü.a", "md5": "b026324c6904b2a9cb4b88d6d61c81d1"},
    ]
    records = ({"hash": "md5", "md5": "d3e5fc8c2471224e1e89308932b2987b.dir"}, {"hash": "md5", "files": listing})
    assert all(is_recorded(tmp_path, made) for made in records)
    (tmp_path / "sub" / "b").write_text("3\n")
    assert not any(is_recorded(tmp_path, made) for made in records)
    assert is_recorded(tmp_path, {"md5": "of a text, by DVC 2"})
