"""Which version of a model is served: `champion` follows the gate and its own target, and has its files."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from passfit.tracking.experiment import experiment_of
from passfit.tracking.registry import registered_aliases

from .samples import Repo

pytestmark = pytest.mark.slow

RED = {("a", "x86-64"): "ram over budget by 19.0 KiB (619.0 KiB of 600.0 KiB)"}


@pytest.fixture(scope="session")
def empty_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a store once: most of the time of a first `track` is MLflow's schema."""
    from mlflow import MlflowClient

    path = tmp_path_factory.mktemp("store") / "mlflow.db"
    MlflowClient(f"sqlite:///{path}").search_experiments()
    return path


@pytest.fixture
def stored(repo: Repo, library: bytes, empty_store: Path) -> Repo:
    """Return a repo with a library for this machine."""
    shutil.copy(empty_store, repo.path / "mlflow.db")
    repo.result("a", "x86-64")
    repo.library(library)
    return repo


def client(repo: Repo):
    from mlflow import MlflowClient

    return MlflowClient(f"sqlite:///{repo.path}/mlflow.db")


def aliases(repo: Repo) -> dict[str, str]:
    return registered_aliases(client(repo), "a")


def tags(repo: Repo, version: str) -> dict[str, str]:
    return client(repo).get_model_version("a", version).tags


def answer(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> list:
    """Ask the champion."""
    import numpy as np
    from mlflow.pyfunc import load_model

    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{repo.path}/mlflow.db")
    return load_model("models:/a@champion").predict({"x": np.array([[1, 2, 3]], np.float32)})["y"].tolist()


def logged(repo: Repo) -> list:
    """Return the LoggedModels, the newest first."""
    found = client(repo)
    return found.search_logged_models([found.get_experiment_by_name("tests").experiment_id])


def test_a_result_is_registered_if_the_gate_passes_it_and_the_last_keeps_its_place_if_not(stored, library):
    first = stored.track(RED)
    assert first.refused == (f"a @ x86-64: not registered: the gate refuses it: {RED['a', 'x86-64']}",)
    assert first.warnings == () and aliases(stored) == {} and client(stored).search_registered_models() == []
    assert [model.tags["passfit.gate"] for model in logged(stored)] == [RED["a", "x86-64"]]
    assert not any(line.startswith("serve:") for line in first.links)

    # the same library, and a gate that passes it: a wider budget, say
    result = stored.track()
    assert (result.warnings, result.refused) == ((), ()) and aliases(stored) == {
        "champion": "1",
        "champion-x86-64": "1",
    }
    assert tags(stored, "1").items() >= {
        ("passfit.gate", "passed"), ("passfit.target", "x86-64"), ("passfit.budget", "ram 1000 B")
    }  # fmt: skip
    assert any("models:/a@champion " in line for line in result.links) and len(logged(stored)) == 1

    # the next one is red, then green; then the first one is back
    stored.library(library + b"\0")
    assert len(stored.track(RED).refused) == 1 and set(aliases(stored).values()) == {"1"}
    assert len(client(stored).search_model_versions("name = 'a'")) == 1
    assert stored.track().refused == () and set(aliases(stored).values()) == {"2"}
    stored.library(library)
    assert stored.track().refused == () and set(aliases(stored).values()) == {"1"}
    assert len(client(stored).search_model_versions("name = 'a'")) == 2
    # a narrower budget refuses what is registered: it keeps its place until another passes, and says so
    stored.track(RED)
    assert set(aliases(stored).values()) == {"1"} and tags(stored, "1")["passfit.gate"] == RED["a", "x86-64"]


def test_without_register_nothing_is_registered(stored):
    from passfit.tracking import track

    result = track(stored.path, stored.params)
    assert [run.new for run in result.runs] == [True] and result.refused == () and len(logged(stored)) == 1
    assert client(stored).search_registered_models() == []
    assert [run.new for run in stored.track().runs] == [False] and len(logged(stored)) == 1
    assert set(aliases(stored)) == {"champion", "champion-x86-64"}


def test_what_was_not_judged_is_not_promoted(stored):
    from passfit.tracking import track

    (refused,) = track(stored.path, stored.params, {}).refused
    assert "not judged" in refused and aliases(stored) == {}


def test_an_experiment_is_logged_and_never_registered(stored, library, monkeypatch):
    stored.track()
    stored.library(library + b"\0")
    monkeypatch.setenv("DVC_EXP_NAME", "wider-net")
    for _ in range(2):
        (refused,) = stored.track().refused
        assert refused == "a @ x86-64: not registered: it is of the experiment 'wider-net'"
        assert set(aliases(stored).values()) == {"1"} and len(logged(stored)) == 2
    monkeypatch.delenv("DVC_EXP_NAME")
    assert stored.track().warnings == () and set(aliases(stored).values()) == {"2"}, "what was committed"


def test_targets_do_not_take_the_place_of_each_other(stored, library):
    stored.result("a", "rpi4")
    stored.library(library + b"\0", target="rpi4")  # as if this machine could load both
    result = stored.track()
    assert result.warnings == ()
    assert aliases(stored) == {"champion": "1", "champion-x86-64": "1", "champion-rpi4": "2"}
    red = stored.track({("a", "rpi4"): "over"})
    assert len(red.refused) == 1 and aliases(stored)["champion-x86-64"] == "1"

    # by hand to the other target: it follows that one from then on
    client(stored).set_registered_model_alias("a", "champion", "2")
    stored.track()
    assert aliases(stored)["champion"] == "2"
    # a target that is declared no more leaves the place to those that are
    (stored.path / "params.yaml").write_text(
        (stored.path / "params.yaml").read_text().replace(", rpi4: {budget: {ram: 1000}}", "")
    )
    stored.track()
    assert aliases(stored) == {"champion": "1", "champion-x86-64": "1", "champion-rpi4": "2"}


def test_a_version_whose_files_are_gone_is_registered_again(stored, monkeypatch):
    (run,) = stored.track().runs
    client(stored).delete_run(run.run_id)  # restorable, until it is collected
    store = f"sqlite:///{stored.path}/mlflow.db"
    subprocess.run(
        [sys.executable, "-m", "mlflow", "gc", "--backend-store-uri", store, "--run-ids", run.run_id],
        check=True, capture_output=True, env=os.environ | {"MLFLOW_TRACKING_URI": store},
    )  # fmt: skip
    (again,) = stored.track().runs
    assert again.new and set(aliases(stored).values()) == {"1"} and len(logged(stored)) == 1, "a LoggedModel stays"
    assert answer(stored, monkeypatch) == [[2, 4, 6]]
    client(stored).delete_logged_model(logged(stored)[0].model_id)
    assert not stored.track().runs[0].new and set(aliases(stored).values()) == {"2"}
    # files alone, without a word to MLflow
    shutil.rmtree(stored.path / "mlartifacts" / "models")
    (third,) = stored.track().runs
    assert third.run_id == again.run_id and set(aliases(stored).values()) == {"3"}
    assert answer(stored, monkeypatch) == [[2, 4, 6]]
    (last,) = stored.track().runs
    assert not last.new and set(aliases(stored).values()) == {"3"}


def test_files_that_dvc_linked_from_its_cache_are_tracked_as_files(stored, monkeypatch):
    """With `cache.type symlink`: and when the cache is cleaned, the model is still served."""
    cache = stored.path / ".dvc" / "cache"
    for number, file in enumerate(sorted((stored.path / "out").rglob("*.*"))):
        if file.is_file() and file.name != ".gitignore":
            cache.mkdir(parents=True, exist_ok=True)
            file.rename(cache / f"{number:030x}")
            (cache / f"{number:030x}").chmod(0o444)
            file.symlink_to(cache / f"{number:030x}")
    result = stored.track()
    assert result.warnings == () and set(aliases(stored).values()) == {"1"}
    shutil.rmtree(cache)
    assert answer(stored, monkeypatch) == [[2, 4, 6]]
    kept = [file for file in (stored.path / "mlartifacts").rglob("*") if file.is_file()]
    assert {"libtwo.so", "libtwo.a", "manifest.json"} <= {file.name for file in kept}
    assert not [file for file in (stored.path / "mlartifacts").rglob("*") if file.is_symlink()]


class TestExperiments:
    """Test the signs of a DVC experiment."""

    def test_a_repo_without_git_has_none(self, tmp_path):
        (tmp_path / "dvc.lock").write_text("a")
        assert experiment_of(tmp_path) is None

    def test_a_copy_of_the_repo(self, tmp_path):
        copy = tmp_path / ".dvc" / "tmp" / "exps" / "standalone" / "tmpx" / "edge"
        copy.mkdir(parents=True)
        assert experiment_of(copy) is not None and experiment_of(tmp_path) is None

    @pytest.mark.parametrize("inside", [".", "edge"])
    def test_a_lock_of_an_experiment_until_it_is_committed(self, tmp_path, inside):
        """In the workspace, where `dvc exp run` leaves its results."""

        def git(*arguments: str) -> None:
            who = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
            subprocess.run(["git", *who, *arguments], cwd=tmp_path, check=True, capture_output=True)

        folder = tmp_path / inside
        folder.mkdir(exist_ok=True)
        git("init", "--quiet")
        for content, message in (("made", "release"), ("tried", "experiment")):
            (folder / "dvc.lock").write_text(content)
            git("add", "--all")
            git("commit", "--quiet", "--message", message)
        git("update-ref", "refs/exps/28/fbec/wider-net", "HEAD")
        git("update-ref", "refs/exps/exec/EXEC_HEAD", "HEAD")
        git("reset", "--quiet", "--hard", "HEAD~1")
        assert experiment_of(folder) is None
        (folder / "dvc.lock").write_text("tried")
        assert experiment_of(folder) == "wider-net"
        (folder / "dvc.lock").write_text("made otherwise")
        assert experiment_of(folder) is None
        (folder / "dvc.lock").write_text("tried")
        git("commit", "--quiet", "--all", "--message", "apply")
        assert experiment_of(folder) is None
