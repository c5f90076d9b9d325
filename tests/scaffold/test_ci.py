"""Test the files for CI: what their commands do, with programs that only note how they were called."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from passfit.cli.app import app
from passfit.errors import ConfigError
from passfit.scaffold import init_repo, write_ci
from passfit.support.yaml_file import read_yaml

from .test_init import repo, write_model  # noqa: F401

_NOTE = '#!/bin/sh\n[ "$(basename $0)$2" != gh--paginate ] || echo "$OLD"\necho "$(basename $0) $*" >> "$CALLS"\n[ "$(basename $0)" != passfit ] || exit ${VERDICT:-0}\n'


@pytest.fixture
def made(repo):  # noqa: F811
    write_model(repo / "a.onnx")
    init_repo(repo, ["a.onnx"], ["x86-64"])
    return repo


@pytest.fixture
def call(tmp_path):
    """A function that runs lines of a CI file as its shell does, and returns the exit code and the calls."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("passfit", "dvc", "gh", "curl", "pip", "sudo", "apt-get"):
        (programs / name).write_text(_NOTE)
        (programs / name).chmod(0o755)

    def run(script: str, folder: Path, **environment: str) -> tuple[int, list[str]]:
        calls = tmp_path / "calls"
        calls.write_text("")
        path = f"{programs}{os.pathsep}{os.environ['PATH']}"
        given = {"PATH": path, "CALLS": str(calls), "RUNNER_TEMP": str(tmp_path), "CI_PROJECT_DIR": str(tmp_path)}
        done = subprocess.run(["bash", "-e", "-c", script], cwd=folder, env=given | environment, check=False)
        return done.returncode, calls.read_text().splitlines()

    return run


def test_github_runs_the_gate_against_the_base_and_comments(made, call):
    files, _ = write_ci(made, "github")
    assert files == [Path(".github/workflows/passfit.yml")]
    steps = {step["name"]: step for step in read_yaml(made / files[0])["jobs"]["gate"]["steps"] if "run" in step}
    assert call(steps["Gate"]["run"], made, GITHUB_BASE_REF="main", VERDICT="1") == (
        1,
        ["passfit gate --against origin/main --format github"],
    )
    assert call(steps["Gate"]["run"], made) == (0, ["passfit gate --format github"])
    for old, place in (
        ("", "gh api repos/o/r/issues/7/comments "),
        ("42", "gh api --method PATCH repos/o/r/issues/comments/42 "),
    ):
        environment = {
            "GITHUB_BASE_REF": "main",
            "GITHUB_REPOSITORY": "o/r",
            "PULL_REQUEST": "7",
            "VERDICT": "1",
            "OLD": old,
        }
        code, calls = call(steps["Comment"]["run"], made, **environment)
        assert code == 0 and calls[-1].startswith(f"{place}--field body=@")
    assert call(steps["Get results, make those that are missing"]["run"], made)[1] == [
        "dvc pull",
        "dvc repro --keep-going",
    ]
    assert call(steps["Install"]["run"], made)[0] != 0, "PASSFIT is not set"
    assert call(steps["Install"]["run"], made, PASSFIT="w.whl")[1][-1] == "pip install w.whl"


@pytest.mark.parametrize("verdict", ["0", "1"])
def test_gitlab_comments_before_the_gate_ends_the_job(made, call, verdict):
    files, _ = write_ci(made, "gitlab")
    assert files == [Path(".gitlab/passfit.yml"), Path(".gitlab-ci.yml")]
    assert read_yaml(made / ".gitlab-ci.yml") == {"include": [{"local": ".gitlab/passfit.yml"}]}
    job = read_yaml(made / ".gitlab/passfit.yml")["passfit"]
    environment = {
        "CI_MERGE_REQUEST_DIFF_BASE_SHA": "abc",
        "CI_MERGE_REQUEST_IID": "3",
        "PASSFIT_TOKEN": "t",
        "CI_API_V4_URL": "http://x",
        "CI_PROJECT_ID": "9",
    }
    code, calls = call("\n".join(job["script"]), made, VERDICT=verdict, **environment)
    assert code == int(verdict) and calls[-1] == "passfit gate --against abc"
    assert calls[-2].startswith("curl") and calls[-2].endswith("http://x/projects/9/merge_requests/3/notes")
    assert not any(each.startswith("curl") for each in call("\n".join(job["script"]), made)[1])


def test_a_gitlab_file_of_ones_own_is_kept(made):
    (made / ".gitlab-ci.yml").write_text("test: {script: [make]}\n")
    files, next_step = write_ci(made, "gitlab")
    assert files == [Path(".gitlab/passfit.yml")] and "include: [{local: .gitlab/passfit.yml}]" in next_step


def test_a_changed_file_is_kept_without_force(made):
    write_ci(made, "github")
    assert write_ci(made, "github")[0] == []
    place = made / ".github/workflows/passfit.yml"
    place.write_text("mine: 1\n")
    with pytest.raises(ConfigError, match="differs.*--force"):
        write_ci(made, "github")
    assert write_ci(made, "github", force=True)[0]


def test_a_folder_in_the_repo_is_where_the_commands_run(repo, call):  # noqa: F811
    write_model(repo / "a.onnx")
    (repo / "dvc.yaml").write_text("stages: {}\n")
    done = CliRunner().invoke(
        app, ["init", "--folder", "edge", "--model", "a.onnx", "--target", "x86-64", "--ci", "github"]
    )
    assert done.exit_code == 0, done.output
    assert "wrote edge/dvc.yaml" in done.output and "`cd edge`" in done.output
    assert (
        read_yaml(repo / ".github/workflows/passfit.yml")["jobs"]["gate"]["defaults"]["run"]["working-directory"]
        == "edge"
    )
    assert (repo / "dvc.yaml").read_text() == "stages: {}\n"


def test_ci_alone_needs_params(repo):  # noqa: F811
    with pytest.raises(ConfigError, match=r"no params\.yaml.*--model"):
        write_ci(repo, "github")
    with pytest.raises(ConfigError, match="Did you mean 'github'"):
        write_ci(repo, "git-hub")
