"""A change chooses the tests that may run what changed, and leaves others."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from .changed import ROOT, changed_files, is_touched


def touched(file: str) -> set[str]:
    tests = [each for each in (ROOT / "tests").rglob("test_*.py") if "repos" not in each.parts]
    return {each.relative_to(ROOT / "tests").as_posix() for each in tests if is_touched(each, {ROOT / file})}


@pytest.mark.parametrize(
    "file, chosen, left",
    [
        ("pipeline/gate/verdicts.py", {"gate/test_verdicts.py", "e2e/test_repro.py"}, {"memory/test_liveness.py", "kernels/rules/test_nt_matmul.py"}),
        ("pipeline/memory/liveness.py", {"memory/test_liveness.py", "codegen/test_library.py"}, {"support/test_sizes.py"}),
        ("pipeline/codegen/library.c.j2", {"codegen/test_library.py", "e2e/test_repro.py"}, {"memory/test_liveness.py"}),
        ("stages/compile.py", {"stages/test_compile.py", "e2e/test_repro.py"}, {"memory/test_liveness.py"}),
        ("tests/memory/networks.py", {"memory/order/test_best_order.py"}, {"memory/test_liveness.py", "e2e/test_repro.py"}),
        ("tests/tracking/conftest.py", {"tracking/test_record.py"}, {"memory/test_liveness.py"}),
        ("tests/golden/simplify.txt", {"passes/test_golden.py"}, {"memory/test_liveness.py"}),
        ("docs/tutorial.md", {"e2e/test_tutorial.py", "test_docs.py"}, {"memory/test_liveness.py"}),
    ],
)  # fmt: skip
def test_a_change_chooses_what_may_run_it(file: str, chosen: set[str], left: set[str]):
    assert (ROOT / file).exists(), "else the row says nothing"
    found = touched(file)
    assert chosen <= found and not left & found


def test_what_all_tests_share_chooses_all():
    assert len(touched("pyproject.toml")) == len(touched("tests/conftest.py")) > 400


def test_new_files_are_changes_and_a_revision_that_git_does_not_know_is_refused(monkeypatch, tmp_path: Path):
    monkeypatch.setattr("tests.changed.ROOT", tmp_path)
    for command in (["init", "-q"], ["config", "user.name", "t"], ["config", "user.email", "t@example.org"]):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    for name in ("same", "edited"):
        (tmp_path / name).write_text("")
    subprocess.run(["git", "add", "."], cwd=tmp_path, check=True)
    subprocess.run(["git", "commit", "-qm", "first"], cwd=tmp_path, check=True)
    (tmp_path / "edited").write_text("1")
    (tmp_path / "new").write_text("")
    assert changed_files("HEAD") == {tmp_path / "edited", tmp_path / "new"}
    with pytest.raises(pytest.UsageError, match="--changed nowhere: "):
        changed_files("nowhere")


def test_pytest_runs_the_chosen_tests_alone():
    command = [sys.executable, "-m", "pytest", "-q", "--collect-only", "-p", "no:cacheprovider", "--changed", "HEAD"]
    done = subprocess.run([*command, "tests/program"], cwd=ROOT, capture_output=True, text=True, check=False)
    chosen = {line.partition("::")[0] for line in done.stdout.splitlines() if "::" in line}
    changes = changed_files("HEAD")
    tests = (ROOT / "tests" / "program").glob("test_*.py")
    assert chosen == {each.relative_to(ROOT).as_posix() for each in tests if is_touched(each, changes)}
