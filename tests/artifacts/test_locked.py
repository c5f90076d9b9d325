"""Inputs of a stage are compared with dvc.lock, large ones by DVC, which reads them once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from passfit.artifacts.locked import altered_output, changed_inputs, read_lock

DVC_YAML = """
stages:
  compile: {cmd: make}
  evaluate-a:
    matrix: {target: [x86-64]}
    cmd: mkdir -p out && cp data/1.bin out/accuracy.json
    deps:
      - data
    outs:
      - out/accuracy.json
"""
STAGE = "evaluate-a@x86-64"


@pytest.fixture
def repo(tmp_path: Path, monkeypatch) -> Path:
    from dvc.repo import Repo

    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "1.bin").write_bytes(b"one")
    (tmp_path / "dvc.yaml").write_text(DVC_YAML)
    with Repo.init(str(tmp_path), no_scm=True) as dvc:
        dvc.reproduce("evaluate-a@x86-64")
    return tmp_path


def changed(repo: Path) -> list[str]:
    lock = read_lock(repo)
    assert lock is not None and STAGE in lock.inputs
    return changed_inputs(repo, STAGE, lock, {})


def test_samples_are_read_again_only_if_their_size_or_time_changed(repo: Path):
    file = repo / "data" / "1.bin"
    assert changed(repo) == []
    before = file.stat()
    with file.open("r+b") as opened:
        opened.write(b"two")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert changed(repo) == []  # it was not read
    os.utime(file)
    assert changed(repo) == ["data"]
    with file.open("r+b") as opened:
        opened.write(b"one")
    assert changed(repo) == []
    (repo / "data" / "2.bin").write_bytes(b"more")
    assert changed(repo) == ["data"]


def test_a_repo_whose_stages_dvc_cannot_read_is_compared_by_content(repo: Path):
    (repo / "dvc.yaml").write_text("stages: {compile: {cmd: make}, broken: 3}")
    assert changed(repo) == []
    (repo / "data" / "1.bin").write_bytes(b"two")
    assert changed(repo) == ["data"]


@pytest.mark.parametrize("found", ["3", "text", "[3, {md5: a}, [b]]", "{path: 4}", "[{path: [a], files: 3}]"])
def test_records_of_another_form_count_as_none(tmp_path: Path, found: str):
    (tmp_path / "dvc.yaml").write_text("stages: {compile: {cmd: make}}")
    (tmp_path / "dvc.lock").write_text(f"stages: {{compile: {{deps: {found}, outs: {found}}}, b: {found}}}")
    lock = read_lock(tmp_path)
    assert lock is not None and set(lock.outputs) <= {"['a']"} and set(lock.inputs) == {"compile", "b"}
    assert altered_output(tmp_path, [Path()], lock.outputs) in (
        None,
        "['a'] is missing, which dvc.lock records; `dvc pull` fetches it.",
    )
