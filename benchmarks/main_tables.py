"""Compile every model once; write the tables of memory, latency and compile time.

    make bench                                                          all benchmarks
    .venv/bin/python benchmarks/main_tables.py                          these tables, small models first
    .venv/bin/python benchmarks/main_tables.py --model ocr-cls --again  one model; its tables are printed, not written
    .venv/bin/python benchmarks/main_tables.py --tables                 write the tables of the rows measured so far

A row is kept as soon as it is known, in benchmarks/.raw, by commit, machine and versions: an interrupted run goes on.
Each model is compiled by `passfit compile` with all defaults, for x86-64, and timed in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import head
import tables
from models import HERE, Model, models
from timing import beside_onnxruntime

from passfit.errors import PassfitError
from passfit.targets import get_target, how_to_run

RESULTS = HERE / "results"
TABLES = {"memory": tables.memory, "latency": tables.latency, "compile_time": tables.compile_time}
#: targets of the widest vectors in the catalogue, the one with dot products of bytes first
WIDE, NARROW = ("x86-64-vnni", "x86-64-v4"), "x86-64"
#: seconds until a compilation is given up, and until it has to react to that
LIMIT, PATIENCE = 900.0, 15.0
#: exit codes of `passfit compile` that leave results: done, and over the device's capacity
_COMPILED = (0, 1)


def measure(model: Model, limit: float) -> dict:
    """Compile and time a model. Returns its row; one with `failed` gives the reason."""
    try:
        size = model.file().stat().st_size
    except PassfitError as error:
        return {"failed": str(error)}
    with tempfile.TemporaryDirectory(prefix="passfit-bench-") as scratch:
        out = Path(scratch) / "out"
        arguments = ["compile", *model.arguments(), f"--target={NARROW}", f"--out={out}"]
        failed, spent = run_passfit(arguments, Path(scratch), limit)
        if failed:
            return {"failed": failed, "compile": spent, "size": size}
        row = {"compile": spent, "size": size}
        for part in ("footprint", "search", "sequence"):
            row[part] = json.loads((out / f"{part}.json").read_text(encoding="utf-8"))
        folders = {"passfit": out} | wide(model, out, Path(scratch), limit)
        return row | {"latency": timed(model, folders)}


def wide(model: Model, out: Path, scratch: Path, limit: float) -> dict[str, Path]:
    """Compile the sequence in `out` for the vectors ONNX Runtime uses here; none if they are the target's own."""
    target = widest()
    if target == NARROW:
        return {}
    arguments = [
        "compile",
        *model.arguments(),
        f"--sequence={out / 'sequence.json'}",
        f"--target={target}",
        f"--out={scratch / 'wide'}",
    ]
    failed, _ = run_passfit(arguments, scratch, limit)
    return {} if failed else {"wide": scratch / "wide"}


def widest() -> str:
    """Return the target with the widest vectors that run here, which ONNX Runtime takes."""
    return next(name for name in (*WIDE, NARROW) if name == NARROW or how_to_run(get_target(name)).native)


def timed(model: Model, folders: dict[str, Path], least: bool = False) -> dict:
    """Time libraries beside ONNX Runtime in a process of its own, which a library may crash."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:
        try:
            return process.submit(beside_onnxruntime, model, folders, least).result()
        except (PassfitError, RuntimeError, BrokenProcessPool) as error:
            return {"failed": f"{type(error).__name__}: {error}"}


def run_passfit(arguments: list[str], folder: Path, limit: float, python: str = sys.executable) -> tuple[str, dict]:
    """Run a command of passfit with a store in `folder`. Returns the reason for its failure, if any, and the seconds it took."""
    started, busy = time.monotonic(), _busy()
    store = os.environ | {"PASSFIT_STORE": str(folder / "store")}  # results of earlier runs would save time
    with (folder / "error").open("wb") as error, (folder / "output").open("wb") as output:
        command = [python, "-m", "passfit.cli", *arguments]
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=store,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=error,
            start_new_session=True,
        )
        try:
            code, used = _wait(process.pid, limit)
        except BaseException:  # Ctrl-C reaches this process alone
            os.killpg(process.pid, signal.SIGKILL)
            raise
    wall = time.monotonic() - started
    others = None if busy is None else round(max(0.0, _busy() - busy - used) / wall, 2)
    spent = {"wall": round(wall, 1), "processor": round(used, 1), "others": others}
    if code is None:
        return f"not done in {limit:g} s", spent
    if code not in _COMPILED:
        said = (folder / "error").read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return (said[-1] if said else f"exit code {code}"), spent
    return "", spent


def _wait(pid: int, limit: float) -> tuple[int | None, float]:
    """Wait for a process that leads a group. Returns its exit code, None if it was given up, and processor seconds."""
    ends = time.monotonic() + limit
    steps = [signal.SIGINT, signal.SIGKILL]
    given_up = False
    while True:
        done, status, usage = os.wait4(pid, os.WNOHANG)
        if done:
            code = None if given_up else os.waitstatus_to_exitcode(status)
            return code, usage.ru_utime + usage.ru_stime
        if time.monotonic() > ends and steps:
            os.killpg(pid, steps.pop(0))
            given_up, ends = True, time.monotonic() + PATIENCE
        time.sleep(0.02)


def _busy() -> float | None:
    """Return the processor seconds of all work on this machine since it started; None outside Linux."""
    file = Path("/proc/stat")
    if not file.exists():
        return None
    user, nice, system, _idle, _waiting, *interrupts = map(int, file.read_text().split("\n", 1)[0].split()[1:8])
    return (user + nice + system + sum(interrupts)) / os.sysconf("SC_CLK_TCK")


def rows_of(chosen: list[Model], folder: Path) -> dict[Model, dict]:
    """Return the rows in `folder`, in the order of `chosen`."""
    files = {model: folder / f"{model.name}.json" for model in chosen}
    return {model: json.loads(file.read_text(encoding="utf-8")) for model, file in files.items() if file.exists()}


def measure_missing(
    chosen: list[Model],
    folder: Path,
    measured: Callable[[Model], dict],
    said: Callable[[dict], str],
    again: bool = False,
) -> None:
    """Measure the models without a row in `folder`, small ones first, and keep each row."""
    for model in small_first(chosen):
        file = folder / f"{model.name}.json"
        if file.exists() and not again:
            continue
        row = measured(model)
        file.write_text(json.dumps(row, indent=1) + "\n", encoding="utf-8")
        print(f"{model.name}: {said(row)}", flush=True)


def small_first(chosen: list[Model]) -> list[Model]:
    """Order models by the size of their files; those that cannot be fetched come first, and fail soon."""

    def size(model: Model) -> int:
        try:
            return model.file().stat().st_size
        except PassfitError:
            return 0

    return sorted(chosen, key=size)


def written(rows: dict[Model, dict], origin: head.Head, command: str) -> dict[str, str]:
    """Return the text of each results file."""
    return {name: table(rows, origin.lines(command)) for name, table in TABLES.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", action="append", help="only this one, and print its tables; repeatable")
    parser.add_argument("--again", action="store_true", help="measure again what is known at this commit")
    parser.add_argument("--tables", action="store_true", help="measure nothing; write the tables of the rows at hand")
    parser.add_argument(
        "--limit", type=float, default=LIMIT, help="seconds until a compilation is given up (default: 900)"
    )
    arguments = parser.parse_args()
    listed = models()
    if unknown := set(arguments.model or ()) - {model.name for model in listed}:
        parser.error(f"no model '{min(unknown)}': choose from {', '.join(model.name for model in listed)}.")
    chosen = [model for model in listed if not arguments.model or model.name in arguments.model]
    origin, folder = head.begin("main_tables")
    if not arguments.tables:
        measure_missing(chosen, folder, lambda model: measure(model, arguments.limit), said, arguments.again)
    rows = rows_of(chosen, folder)
    for name, text in written(rows, origin, "make bench").items():
        if arguments.model:
            print(text)
        else:
            (RESULTS / f"{name}.md").write_text(text, encoding="utf-8")


def said(row: dict) -> str:
    """Sum a row up in a line."""
    if "failed" in row:
        return f"failed: {row['failed']}"
    speed = "not timed" if "failed" in row["latency"] else f"{tables.latency_ratio(row):.2f} of ONNX Runtime's time"
    return f"ram {tables.ram_ratio(row):.3f} of tvm-default, {speed}, compiled in {row['compile']['wall']:.1f} s"


if __name__ == "__main__":
    main()
