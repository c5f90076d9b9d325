"""A tracking server that is slow, dies half-way, or answers nonsense: one warning, and results stay."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

pytestmark = pytest.mark.slow
_FOUND = b'{"experiment": {"experiment_id": "1", "name": "tests", "lifecycle_stage": "active"}}'
#: what it does with the first request behind /health, and later ones
BEHAVIOURS = {
    "never answers": ("hang",),
    "answers health alone": ("health", "hang"),
    "dies after health": ("health", "close"),
    "dies after the first answer": ("health", "found", "close"),
    "cuts its answers short": ("health", "cut"),
    "is broken": ("health", "error"),
    "answers text": ("health", "text"),
    "answers another object": ("health", "empty"),
    "answers a list": ("health", "list"),
    "answers another object later": ("health", "found", "empty"),
}


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, steps: tuple[str, ...]):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.steps, self.number, self.over = steps, 0, threading.Event()


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        step = self.server.steps[min(self.server.number, len(self.server.steps) - 1)]
        self.server.number += 1
        if step == "hang":
            self.server.over.wait(60)
        if step in ("hang", "close"):
            self.close_connection = True
            return
        body = {
            "health": b"OK",
            "found": _FOUND,
            "text": b"<html>",
            "empty": b"{}",
            "list": b"[1]",
            "cut": b"{",
            "error": b"{}",
        }[step]
        self.send_response(500 if step == "error" else 200)
        self.send_header("Content-Length", str(len(body) + 100 * (step == "cut")))
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = True

    do_POST = do_GET


@pytest.fixture
def server(request: pytest.FixtureRequest) -> Iterator[_Server]:
    made = _Server(BEHAVIOURS[request.param])
    threading.Thread(target=made.serve_forever, daemon=True).start()
    yield made
    made.over.set()
    made.shutdown()
    made.server_close()


@pytest.mark.fault(
    "tracking server", "it never answers, dies after some answers, cuts them short, or answers nonsense",
    "one warning within the time limits of requests; results stay, `passfit track` logs them later",
)  # fmt: skip
@pytest.mark.parametrize("server", BEHAVIOURS, indirect=True)
def test_a_server_that_fails_is_one_warning(server, repo, monkeypatch, capfd) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "1")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    monkeypatch.setattr("passfit.tracking.store.REACH_SECONDS", 1)
    repo.result()
    result = repo.track()
    assert result.runs == ()
    (warning,) = result.warnings
    assert "not tracked: " in warning and "\n" not in warning
    assert capfd.readouterr() == ("", "")
