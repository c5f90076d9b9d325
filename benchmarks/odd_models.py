"""Odd models through `passfit compile`: each ends with exit code 0 or 2, soon, and leaves nothing half-written.

    .venv/bin/python benchmarks/odd_models.py                     all of them; benchmarks/results/odd_models.md
    .venv/bin/python benchmarks/odd_models.py --only If --jobs 2  those whose name holds a word; no file is written

Every run has a process, a working folder and a TMPDIR of its own. A run over the limit gets Ctrl-C, and is tried once
more when nothing else runs. Exits with 1 where a run failed a rule of `faults`.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import odd_files
import odd_graphs
from head import head
from odd_graphs import Odd

RESULTS = Path(__file__).parent / "results" / "odd_models.md"
#: seconds a run may take, and those after Ctrl-C
LIMIT, PATIENCE = 90.0, 10.0
#: what ONNX Runtime's telemetry leaves in TMPDIR when it is imported
_FOREIGN = frozenset({".ses"})
GROUPS = (
    odd_files.damaged, odd_files.formats, odd_files.structures, odd_files.branches, odd_files.side_files,
    odd_graphs.dtypes, odd_graphs.sizes, odd_graphs.attributes, odd_graphs.chains, odd_graphs.names, odd_graphs.values,
)  # fmt: skip


@dataclass(frozen=True)
class Run:
    """Outcome of a run: `code` is None if it was killed after Ctrl-C; `left` are the files it left behind."""

    odd: Odd
    code: int | None
    seconds: float
    error: str
    left: tuple[str, ...]

    @property
    def said(self) -> str:
        return next(iter(self.error.splitlines()), "")

    def faults(self, limit: float) -> list[str]:
        found = []
        if self.code is None:
            found.append("deaf to Ctrl-C")
        elif self.code not in (0, 2):
            found.append(f"exit code {self.code}")
        if self.seconds > limit:
            found.append(f"over {limit:g} s")
        if "Traceback" in self.error:
            found.append("a traceback")
        elif self.code == 2 and len(self.error.splitlines()) != 1:
            found.append(f"{len(self.error.splitlines())} lines of error")
        if self.left:
            found.append(f"left {', '.join(self.left)}")
        return found


def odd_models() -> Iterator[tuple[str, Odd]]:
    """Yield the (group, model) pairs, the same in every run."""
    for group in GROUPS:
        for odd in group():
            yield group.__name__, odd


def run(odd: Odd, limit: float) -> Run:
    with tempfile.TemporaryDirectory(prefix="odd-") as name:
        folder = Path(name)
        scratch = folder / "tmp"
        work = folder / "work"
        scratch.mkdir()
        work.mkdir()
        argument = odd.write(work)
        before = _files(work)
        command = [
            sys.executable,
            "-m",
            "passfit.cli",
            "compile",
            "--target",
            "x86-64",
            "--out",
            "out",
            *odd.options,
            "--",
            argument,
        ]
        started = time.monotonic()
        with (folder / "err").open("wb") as error, (folder / "stdout").open("wb") as out:
            process = subprocess.Popen(
                command, cwd=work, stdin=subprocess.DEVNULL, stdout=out, stderr=error,
                env=os.environ | {"TMPDIR": str(scratch)}, start_new_session=True,
            )  # fmt: skip
            code = _wait(process, limit)
        seconds = time.monotonic() - started
        left = {f"$TMPDIR/{each}" for each in _files(scratch)}
        left |= {each for each in _files(work) - before if code != 0 or not each.startswith("out")}
        return Run(odd, code, seconds, (folder / "err").read_text(errors="replace"), tuple(sorted(left)[:3]))


def _files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.name not in _FOREIGN}


def _wait(process: subprocess.Popen, limit: float) -> int | None:
    """Return the exit code; None if it did not even end after Ctrl-C."""
    try:
        return process.wait(limit)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGINT)
    try:
        return process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return None


def table(groups: dict[str, list[Run]], limit: float, head: list[str]) -> str:
    """Format a row for each group, then one for each model; texts of a run are cut, and hold nothing that Markdown reads."""
    runs = [each for group in groups.values() for each in group]
    slowest = max(each.seconds for each in runs)
    lines = [
        "# Odd models", "", *head, "",
        f"{len(runs)} models through `passfit compile`; the slowest took {slowest:.0f} s.", "",
        "| group | models | exit 0 | exit 2 | faults |", "| --- | --- | --- | --- | --- |",
    ]  # fmt: skip
    for group, members in groups.items():
        codes = Counter(each.code for each in members)
        faulty = sum(bool(each.faults(limit)) for each in members)
        lines.append(f"| {group} | {len(members)} | {codes[0]} | {codes[2]} | {faulty} |")
    lines += ["", "| model | exit | faults | first line of stderr |", "| --- | --- | --- | --- |"]
    for each in runs:
        lines.append(f"| {each.odd.name} | {each.code} | {'; '.join(each.faults(limit))} | {_plain(each.said)} |")
    return "\n".join(lines) + "\n"


def _plain(text: str) -> str:
    kept = "".join(
        letter if letter.isprintable() and letter not in "|`<>" else " " for letter in text.removeprefix("passfit: ")
    )
    return kept if len(kept) < 200 else f"{kept[:200]} …"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="models whose group or name holds this")
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds a run may take")
    parser.add_argument("--jobs", type=int, default=1, help="runs at the same time")
    arguments = parser.parse_args()
    origin = head().lines(f".venv/bin/python benchmarks/odd_models.py --jobs {arguments.jobs}")
    chosen = [(group, odd) for group, odd in odd_models() if arguments.only in f"{group}: {odd.name}"]
    found: list[Run] = []
    with ThreadPoolExecutor(arguments.jobs) as threads:
        for (_, odd), done in zip(chosen, threads.map(lambda each: run(each[1], arguments.limit), chosen)):
            found.append(done)
            print(
                f"{done.code} {done.seconds:5.1f} s  {odd.name!r}: {'; '.join(done.faults(arguments.limit)) or 'ok'}: {_plain(done.said)}",
                flush=True,
            )
    found = [run(each.odd, arguments.limit) if each.seconds > arguments.limit else each for each in found]
    groups: dict[str, list[Run]] = {}
    for (group, _), done in zip(chosen, found):
        groups.setdefault(group, []).append(done)
    faulty = [each for each in found if each.faults(arguments.limit)]
    print(f"{len(found)} models, {len(faulty)} with faults")
    for each in faulty:
        print(f"  {each.odd.name!r}: {'; '.join(each.faults(arguments.limit))}: {_plain(each.said)}")
    if not arguments.only:
        RESULTS.write_text(table(groups, arguments.limit, origin), encoding="utf-8")
    return 1 if faulty else 0


if __name__ == "__main__":
    sys.exit(main())
