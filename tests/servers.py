"""Commands of MLflow that answer over HTTP, and requests to them."""

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

ENOUGH_SECONDS = 300


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Servers:
    """Processes of `mlflow`, each with a log in `folder`; `stop` ends them and everything they started."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.started: list[subprocess.Popen] = []

    def start(self, url: str, *arguments: str, **environment: str) -> None:
        """Start a command of mlflow and wait until `url` answers."""
        log = self._start(arguments, environment)
        self._wait(url, self.started[-1], log)

    def serve(self, models: list[str], store: str) -> dict[str, str]:
        """`mlflow models serve` for the champion of each model, all at once; name → address."""
        logs, addresses = {}, {}
        for model in models:
            port = str(free_port())
            addresses[model] = f"http://127.0.0.1:{port}"
            command = ("models", "serve", "-m", f"models:/{model}@champion", "--env-manager", "local", "--port", port)
            logs[model] = self._start(command, {"MLFLOW_TRACKING_URI": store}), self.started[-1]
        for model, (log, process) in logs.items():
            self._wait(f"{addresses[model]}/ping", process, log)
        return addresses

    def stop(self) -> None:
        alive = [process for process in self.started if process.poll() is None]
        for process in alive:
            os.killpg(process.pid, signal.SIGTERM)
        for process in alive:
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:  # a server waits for connections that nobody closes
                os.killpg(process.pid, signal.SIGKILL)
                process.wait(timeout=30)

    def _start(self, arguments: tuple[str, ...], environment: dict[str, str]) -> Path:
        # `mlflow models serve` starts uvicorn by its name
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        log = self.folder / f"server-{len(self.started)}.log"
        with log.open("w") as file:
            process = subprocess.Popen(
                [sys.executable, "-m", "mlflow", *arguments],
                cwd=self.folder,
                env=os.environ | {"MLFLOW_DISABLE_TELEMETRY": "true", "PATH": path} | environment,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.started.append(process)
        return log

    def _wait(self, url: str, process: subprocess.Popen, log: Path) -> None:
        deadline = time.monotonic() + ENOUGH_SECONDS
        while time.monotonic() < deadline:
            try:
                with urllib.request.urlopen(url, timeout=5):
                    return
            except (urllib.error.URLError, OSError):
                assert process.poll() is None, log.read_text()
                time.sleep(0.3)
        pytest.fail(f"no answer: {log.read_text()}")


def ask(address: str, inputs: dict[str, list]) -> dict[str, list]:
    """The predictions for `inputs`, both nested lists by name."""
    body = json.dumps({"inputs": inputs}).encode()
    request = urllib.request.Request(f"{address}/invocations", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)["predictions"]
