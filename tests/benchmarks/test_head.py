"""The head of results files: what it says, and which rows may share a table."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from .conftest import BENCHMARKS

LINES = (
    r"\* command: `.+`",
    r"\* commit: [0-9a-f]{7,12}( \+ uncommitted changes)?, \d{4}-\d\d-\d\d",
    r"\* machine: .+, \d+ cores.*",
    r"\* versions: .+",
    r"\* load average at the start: .+",
)


@pytest.fixture
def head(scripts, monkeypatch, tmp_path):
    import head

    monkeypatch.setattr(head, "RAW", tmp_path)
    return head


@pytest.mark.parametrize("file", sorted((BENCHMARKS / "results").glob("*.md")), ids=lambda file: file.name)
def test_every_results_file_has_a_head(file):
    title, blank, *lines = file.read_text(encoding="utf-8").split("\n")
    assert title.startswith("# ") and not blank
    for pattern, line in zip(LINES, lines):
        assert re.fullmatch(pattern, line), line


def test_the_head_of_now_has_these_lines(head):
    for pattern, line in zip(LINES, head.head().lines("make bench"), strict=True):
        assert re.fullmatch(pattern, line) or "commit: unknown" in line, line


def test_changes_of_the_tree_and_work_of_others_are_said(head):
    clean = replace(head.head(), commit="0123456789abcdef", changes="", date="2026-01-02", load=0.1)
    said = "\n".join(clean.lines("x"))
    assert "* commit: 0123456789ab, 2026-01-02\n" in said and "0.10, quiet" in said
    said = "\n".join(replace(clean, changes="0", load=2.0).lines("x"))
    assert "0123456789ab + uncommitted changes" in said and "2.00, shared with other work" in said


@pytest.mark.parametrize("field", ["commit", "changes", "machine", "versions"])
def test_no_table_holds_rows_of_another_origin(head, field):
    now = head.head()
    _, folder = head.begin("rows", now)
    _, other = head.begin("rows", replace(now, **{field: "another"}))
    assert folder != other


def test_a_run_that_goes_on_keeps_its_rows_and_the_head_it_began_with(head):
    now = head.head()
    begun, folder = head.begin("rows", now)
    again, same = head.begin("rows", replace(now, date="2099-01-01", load=9.0))
    assert (again, same) == (begun, folder)
    assert head.begin("others", now)[1] != folder


def test_uncommitted_changes_of_sources_alone_count(head, monkeypatch, tmp_path):
    import subprocess

    def git(*arguments):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments], cwd=tmp_path, check=True)

    for folder in ("pipeline", "stages", "benchmarks/results", "docs"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "file").write_text("1")
    (tmp_path / "pyproject.toml").write_text("")
    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "all")
    monkeypatch.setattr(head, "HERE", tmp_path / "benchmarks")
    for file in ("docs/file", "benchmarks/results/file", "benchmarks/results/new"):
        (tmp_path / file).write_text("2")
    assert head.head().changes == ""
    seen = {""}
    for file in ("pipeline/file", "benchmarks/file", "stages/new"):
        (tmp_path / file).write_text("2")
        changes = head.head().changes
        assert changes not in seen, file
        seen.add(changes)
