"""A real tracking server, a server that is down, and a served model."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from passfit.tracking import track

pytestmark = pytest.mark.slow
ENOUGH_SECONDS = 120


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture
def start(tmp_path):
    """Start a command of mlflow and wait until `url` answers; everything it started is ended after the test."""
    started = []

    def run(url: str, *arguments: str, **environment: str) -> None:
        # `mlflow models serve` starts uvicorn by its name
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        log = (tmp_path / f"server-{len(started)}.log").open("w")
        process = subprocess.Popen(
            [sys.executable, "-m", "mlflow", *arguments],
            cwd=tmp_path,
            env=os.environ | {"MLFLOW_DISABLE_TELEMETRY": "true", "PATH": path} | environment,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        started.append(process)
        deadline = time.monotonic() + ENOUGH_SECONDS
        while time.monotonic() < deadline:
            try:
                with urllib.request.urlopen(url, timeout=5):
                    return
            except (urllib.error.URLError, OSError):
                assert process.poll() is None, (tmp_path / log.name).read_text()
                time.sleep(0.3)
        pytest.fail(f"no answer: {(tmp_path / log.name).read_text()}")

    yield run
    for process in started:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGTERM)
        process.wait(timeout=30)


def test_runs_and_models_on_a_tracking_server(repo, library, start, monkeypatch, tmp_path, capfd):
    from mlflow import MlflowClient

    url = f"http://127.0.0.1:{free_port()}"
    store = ("--backend-store-uri", f"sqlite:///{tmp_path}/s.db", "--artifacts-destination", str(tmp_path / "files"))
    start(f"{url}/health", "server", "--host", "127.0.0.1", "--port", url.rsplit(":", 1)[1], "--workers", "1", *store)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", url)
    repo.result("a", "x86-64")
    repo.library(library)
    repo.result("b", "rpi4")
    first = track(repo.path, repo.params)
    assert first.warnings == () and [run.new for run in first.runs] == [True, True]
    assert any(line.startswith(f"charts:  {url}/#/experiments/") for line in first.links)
    assert [run.new for run in track(repo.path, repo.params).runs] == [False, False]
    assert capfd.readouterr() == ("", "")
    names = {artifact.path for artifact in MlflowClient(url).list_artifacts(first.runs[0].run_id)}
    assert {"footprint.json", "libtwo.so", "model"} <= names
    assert MlflowClient(url).get_model_version_by_alias("a", "champion").version
    assert not (repo.path / "mlflow.db").exists()


def test_a_server_that_is_down_costs_a_warning(repo, monkeypatch):
    repo.result()
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://127.0.0.1:{free_port()}")
    result = track(repo.path, repo.params)
    assert result.runs == ()
    assert "no answer from http://127.0.0.1" in result.warnings[0] and "passfit track" in result.warnings[0]


@pytest.mark.parametrize("uri", ["file:///nowhere", "nonsense://x", "sqlite:////dev/null/all.db"])
def test_a_store_that_cannot_be_used_costs_a_warning(repo, monkeypatch, uri):
    repo.result()
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    result = track(repo.path, repo.params)
    assert result.runs == () and len(result.warnings) == 1


def test_mlflow_serves_the_library_over_http(repo, library, start):
    repo.result("a", "x86-64")
    repo.library(library)
    assert track(repo.path, repo.params).warnings == ()
    port = free_port()
    start(
        f"http://127.0.0.1:{port}/ping",
        "models", "serve", "-m", "models:/a@champion", "--env-manager", "local", "--port", str(port),
        MLFLOW_TRACKING_URI=f"sqlite:///{repo.path}/mlflow.db",
    )  # fmt: skip
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/invocations",
        data=json.dumps({"inputs": {"x": [[1, 2, 3]]}}).encode(),
        headers={"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        said = json.load(answer)
    assert said == {"predictions": {"y": [[2.0, 4.0, 6.0]], "n": [1]}}
