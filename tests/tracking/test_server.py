"""A real tracking server, a server that is down, and a served model."""

from __future__ import annotations

import pytest

from ..servers import Servers, ask, free_port

pytestmark = pytest.mark.slow


@pytest.fixture
def servers(tmp_path):
    found = Servers(tmp_path)
    yield found
    found.stop()


def test_runs_and_models_on_a_tracking_server(repo, library, servers, monkeypatch, tmp_path, capfd):
    from mlflow import MlflowClient

    url = f"http://127.0.0.1:{free_port()}"
    store = ("--backend-store-uri", f"sqlite:///{tmp_path}/s.db", "--artifacts-destination", str(tmp_path / "files"))
    servers.start(
        f"{url}/health", "server", "--host", "127.0.0.1", "--port", url.rsplit(":", 1)[1], "--workers", "1", *store
    )
    monkeypatch.setenv("MLFLOW_TRACKING_URI", url)
    repo.result("a", "x86-64")
    repo.library(library)
    repo.result("b", "rpi4")
    first = repo.track()
    assert first.warnings == () and [run.new for run in first.runs] == [True, True]
    assert any(line.startswith(f"charts:  {url}/#/experiments/") for line in first.links)
    assert [run.new for run in repo.track().runs] == [False, False]
    assert capfd.readouterr() == ("", "")
    names = {artifact.path for artifact in MlflowClient(url).list_artifacts(first.runs[0].run_id)}
    assert {"footprint.json", "libtwo.so", "model"} <= names
    assert MlflowClient(url).get_model_version_by_alias("a", "champion").version
    assert not (repo.path / "mlflow.db").exists()


def test_a_server_that_is_down_costs_a_warning(repo, monkeypatch):
    repo.result()
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://127.0.0.1:{free_port()}")
    result = repo.track()
    assert result.runs == ()
    assert "no answer from http://127.0.0.1" in result.warnings[0] and "passfit track" in result.warnings[0]


@pytest.mark.parametrize("uri", ["file:///nowhere", "nonsense://x", "sqlite:////dev/null/all.db"])
def test_a_store_that_cannot_be_used_costs_a_warning(repo, monkeypatch, uri):
    repo.result()
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    result = repo.track()
    assert result.runs == () and len(result.warnings) == 1


def test_mlflow_serves_the_library_over_http(repo, library, servers):
    repo.result("a", "x86-64")
    repo.library(library)
    assert repo.track().warnings == ()
    address = servers.serve(["a"], f"sqlite:///{repo.path}/mlflow.db")["a"]
    assert ask(address, {"x": [[1, 2, 3]]}) == {"y": [[2.0, 4.0, 6.0]], "n": [1]}
