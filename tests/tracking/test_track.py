"""Runs in a real MLflow store."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from .samples import LIBRARY, build_library

pytestmark = pytest.mark.slow


def client(repo):
    from mlflow import MlflowClient

    return MlflowClient(f"sqlite:///{repo.path}/mlflow.db")


def runs(repo):
    found = client(repo)
    experiment = found.get_experiment_by_name("tests")
    return found.search_runs([experiment.experiment_id])


@pytest.fixture
def tracked(repo, library, capfd):
    """Two results, of which one can be served, logged once."""
    repo.result("a", "x86-64")
    repo.library(library)
    repo.result("b", "rpi4")
    result = repo.track()
    assert result.warnings == ()
    return result


def test_one_run_for_each_result(repo, tracked, capfd, tmp_path):
    assert capfd.readouterr() == ("", ""), "MLflow's own noise"
    found = {run.info.run_name: run for run in runs(repo)}
    assert set(found) == {"a @ x86-64", "b @ rpi4"}
    run = found["b @ rpi4"]
    assert run.info.status == "FINISHED"
    assert run.data.params == {
        "model": "b", "target": "rpi4", "strategy": "orchestrated", "max-extra-compute": "0.25", "max-slowdown": "1.25",
    }  # fmt: skip
    assert run.data.metrics["best/ram_kib"] == 0.625
    history = client(repo).get_metric_history(run.info.run_id, "best/ram_kib")
    assert {point.step: point.value for point in history} == {0: 1.25, 1: 0.625}
    assert not [name for name, value in run.data.metrics.items() if value > 1000], "no raw bytes"
    assert run.data.tags["mlflow.note.content"].startswith("**b @ rpi4**")
    history = client(repo).get_metric_history(run.info.run_id, "search/best_ram_kib")
    assert sorted((point.step, point.value) for point in history) == [(i, (900 - i) / 1024) for i in range(5)]
    names = {artifact.path for artifact in client(repo).list_artifacts(run.info.run_id)}
    assert names == {
        "footprint.json", "libtwo.a", "manifest.json", "sequence.json", "trajectory.json", "effects.json",
        "report.html",
    }  # fmt: skip
    page = Path(client(repo).download_artifacts(run.info.run_id, "report.html", tmp_path)).read_text()
    assert "b @ rpi4" in page and "a @ rpi4" not in page
    assert (repo.path / "mlartifacts").is_dir() and not (repo.path / "mlruns").exists()
    assert f"look:    mlflow ui --backend-store-uri sqlite:///{repo.path}/mlflow.db" in tracked.links
    assert any("compare-runs" in line for line in tracked.links)

    # the same content again: nothing new; a changed result: one new run and the same registered version
    again = repo.track()
    assert [run.new for run in again.runs] == [False, False]
    assert [run.run_id for run in again.runs] == [run.run_id for run in tracked.runs]
    assert len(runs(repo)) == 2
    repo.write("profile/a/effects.json", {"target": "another", "passes": [], "pairs": []})
    changed = repo.track()
    assert [run.new for run in changed.runs] == [True, False]
    assert len(runs(repo)) == 3
    assert len(client(repo).search_model_versions("name = 'a'")) == 1


def test_the_host_library_is_registered_and_answers(repo, tracked, monkeypatch):
    import mlflow
    import numpy as np

    (version,) = client(repo).search_model_versions("name = 'a'")
    assert client(repo).get_model_version_by_alias("a", "champion").version == version.version
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{repo.path}/mlflow.db")
    model = mlflow.pyfunc.load_model("models:/a@champion")
    x = np.array([[1, 2, 3]], "float32")
    first, second = model.predict({"x": x}), model.predict(x)
    np.testing.assert_array_equal(first["y"], 2 * x)
    assert (first["n"].tolist(), second["n"].tolist()) == ([1], [2]), "an answer is a copy, not the arena"
    with pytest.raises(RuntimeError, match="code 7: negative"):
        model.predict({"x": -x})
    with pytest.raises(mlflow.MlflowException, match="shape"):
        model.predict({"x": x[:, :2]})


@pytest.mark.parametrize("before", [False, True])
def test_a_library_that_does_not_load_is_never_the_champion(repo, library, tmp_path, before):
    from mlflow.exceptions import MlflowException

    repo.result("a", "x86-64")
    if before:
        repo.library(library)
        assert repo.track().warnings == ()
    source = LIBRARY.replace("n[0]++", "n[0] += nowhere()")
    repo.library(build_library(tmp_path / "libtwo.so", f"int nowhere(void);\n{source}"))
    result = repo.track()
    (warning,) = result.warnings
    assert warning.startswith("a @ x86-64: not registered: libtwo.so does not load") and "nowhere" in warning
    assert [run.new for run in result.runs] == [True] and not any(line.startswith("serve") for line in result.links)
    assert result.refused == ()
    if before:
        assert str(client(repo).get_model_version_by_alias("a", "champion").version) == "1"
        assert len(client(repo).search_model_versions("name = 'a'")) == 1
    else:
        with pytest.raises(MlflowException):
            client(repo).get_model_version_by_alias("a", "champion")


@pytest.mark.fault(
    "tracking server", "SIGKILL while a run is logged", "the next run logs it whole, the other is marked as killed"
)
def test_a_run_that_was_cut_short_does_not_count(repo, monkeypatch):
    from passfit.tracking import runs as module

    repo.result()

    def die(*_):
        raise KeyboardInterrupt

    # the process dies: it cannot even mark the run as failed
    monkeypatch.setattr(module, "_log_figures", die)
    monkeypatch.setattr(module, "_give_up", lambda *_: None)
    with pytest.raises(KeyboardInterrupt):
        repo.track()
    monkeypatch.undo()
    assert [run.info.status for run in runs(repo)] == ["RUNNING"]

    (run,) = repo.track().runs
    assert run.new
    assert sorted(run.info.status for run in runs(repo)) == ["FINISHED", "KILLED"]
    (run,) = repo.track().runs
    assert not run.new


def test_a_store_that_refuses_is_a_warning(repo, monkeypatch):
    from mlflow import MlflowClient
    from mlflow.exceptions import MlflowException

    repo.result()

    def refuse(*_):
        raise MlflowException("disk full")

    monkeypatch.setattr(MlflowClient, "log_artifact", refuse)
    result = repo.track()
    assert result.runs == () and "disk full" in result.warnings[0]
    assert [run.info.status for run in runs(repo)] == ["FAILED"]


def damaged(path: Path, how: str) -> None:
    if how == "noise":
        path.write_bytes(bytes(range(1, 256)) * 40)
    elif how == "cut":
        os.truncate(path, 50_000)
    else:
        with sqlite3.connect(path) as database:
            newer = "update alembic_version set version_num = 'x'"
            database.execute("drop table experiments" if how == "table" else newer)


@pytest.mark.fault("tracking server", "a damaged database", "one warning with the file to move away")
def test_a_damaged_store_is_one_warning_without_a_traceback(repo, tmp_path, monkeypatch, capfd):
    """And it keeps its bytes: a damaged file that is not a database may be somebody's."""
    repo.result()
    assert repo.track().warnings == ()
    whole = (repo.path / "mlflow.db").read_bytes()
    reasons = {"noise": "not a database", "cut": "malformed", "table": "no such", "schema": "schema"}
    for how, said in reasons.items():
        database = tmp_path / how  # MLflow keeps a store open by its name
        monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{database}")
        database.write_bytes(whole)
        damaged(database, how)
        before = database.read_bytes()
        for _ in range(2):
            (warning,) = repo.track().warnings
            assert warning.startswith("not tracked: ") and said in warning and "\n" not in warning
            assert (f"Move {database} away" in warning) == (how in ("noise", "cut"))
        assert how == "table" or database.read_bytes() == before  # MLflow makes a new table
        assert capfd.readouterr() == ("", "")


@pytest.mark.fault("two at once", "two `passfit track` of one repo", "each result is logged once")
def test_two_processes_at_once_log_each_result_once(repo, tmp_path):
    for target in ("x86-64", "rpi4"):
        repo.result("a", target)
        repo.result("b", target)
    code = (
        "import sys; from pathlib import Path; from passfit.params.params import load_params; from passfit.tracking import track\n"
        "repo = Path(sys.argv[1]); result = track(repo, load_params(repo / 'params.yaml'), {})\n"
        "assert not result.warnings, result.warnings\n"
        "print(sum(run.new for run in result.runs))"
    )
    command = [sys.executable, "-c", code, str(repo.path)]
    both = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
        for _ in range(2)
    ]
    said = [process.communicate(timeout=300) for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    assert sum(int(out) for out, _ in said) == 4
    assert len(runs(repo)) == 4
    assert os.listdir(tmp_path) == ["repo"]


def test_a_broken_result_takes_no_other_one_away(repo):
    repo.result("a", "x86-64")
    repo.result("b", "x86-64")
    (repo.path / "out/compile/a/x86-64/footprint.json").write_text("{")
    found = repo.track()
    assert [run.name for run in found.runs] == ["b @ x86-64"]
    assert "a @ x86-64: not tracked: 'out/compile/a/x86-64/footprint.json': " in found.warnings[0]


def test_no_results_is_a_warning(repo):
    result = repo.track()
    assert result.runs == () and "dvc repro" in result.warnings[0]
    assert not (repo.path / "mlflow.db").exists()
