"""Dask clusters of this machine: a scheduler and workers, processes of their own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from .servers import free_port


@contextmanager
def running_cluster(folder: Path, threads: int = 2) -> Iterator[tuple[str, list[subprocess.Popen]]]:
    """Yield the address of a scheduler with two workers, and these."""
    pytest.importorskip("distributed")
    port = free_port()
    quiet = {"stdout": subprocess.DEVNULL, "stderr": (folder / "log").open("w"), "cwd": folder}
    command = [sys.executable, "-m", "dask"]
    scheduler = subprocess.Popen([*command, "scheduler", "--port", str(port), "--no-dashboard"], **quiet)
    arguments = ["--nthreads", str(threads), "--no-dashboard", "--local-directory", str(folder)]
    workers = [subprocess.Popen([*command, "worker", f"tcp://127.0.0.1:{port}", *arguments], **quiet) for _ in range(2)]
    from distributed import Client

    with Client(f"tcp://127.0.0.1:{port}", timeout=60, set_as_default=False) as client:
        client.wait_for_workers(2, timeout=60)
    yield f"dask://127.0.0.1:{port}", workers
    for process in (*workers, scheduler):
        process.terminate()
        process.wait(60)
