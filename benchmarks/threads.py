"""Milliseconds a run of one library by one thread and by two: one machine, turn by turn, in one run of this file.

    .venv/bin/python benchmarks/threads.py                        a few models; results in benchmarks/results/threads/
    .venv/bin/python benchmarks/threads.py --model ocr-cls --again

The sequences are those of search/latency.py, `winner` in parts and `whole`. Each library is a program that runs for SECONDS in
each of ROUNDS; of its medians the median counts. `ram` is predicted, `measured` the anonymous memory it gained.

How many cores others leave to it is measured in the same rounds, by the library of one thread: `cores` is how much more
two such programs get done at once than one alone. Two threads cannot gain more than that.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from entries import HERE, Entry, alone, entries, geometric_mean
from latency import TARGET, lower, passes
from latency_table import COLUMNS

from passfit import api
from passfit.codegen.build_library import build_library
from passfit.kernels.rules.parallel_loops import has_parallel_loop
from passfit.memory.placement.account import footprint_of
from passfit.memory.validation.checked_plan import checked_plan
from passfit.support.sizes import format_bytes
from passfit.support.text_files import write_text
from passfit.verify.inputs import make_input
from passfit.verify.runner import Linked, link

RESULTS = HERE / "results" / "threads"
MODELS = ("ocr-cls", "mobilenet_v2", "squeezenet1.1", "resnet50")
THREADS = (1, 2)
ROUNDS, SECONDS, REPEATS = 5, 0.4, 60


def measure(entry: Entry) -> dict:
    """By column and number of threads: milliseconds, ram and measured; equal says that all outputs are the same bytes."""
    imported = entry.load(entry.fetched())
    inputs = make_input(imported.onnx, 0, 0)
    found: dict = {"load": os.getloadavg()[0]}
    with tempfile.TemporaryDirectory(prefix="passfit-") as scratch:
        programs: dict[tuple[str, int], Linked] = {}
        for column in COLUMNS:
            specs = passes(entry, column)
            for threads in THREADS if specs is not None else ():
                folder = Path(scratch) / f"{column}-{threads}"
                folder.mkdir()
                programs[column, threads], one = _built(imported, specs, threads, folder)
                found.setdefault(column, {"cores": []})[str(threads)] = one | {"ms": []}
        outputs: dict[str, set[bytes]] = {}
        for _ in range(ROUNDS):
            for (column, threads), program in programs.items():
                report, results = program.run([inputs], REPEATS, SECONDS)
                one = found[column][str(threads)]
                one["ms"].append(report["median_ns"] / 1e6)
                one["measured"] = (report["after_kib"] - report["before_kib"]) * 1024
                outputs.setdefault(column, set()).add(b"".join(value.tobytes() for value in results[0].values()))
            for column in outputs:
                alone_ms = found[column]["1"]["ms"][-1]
                found[column]["cores"].append(2 * alone_ms / _at_once(programs[column, 1], inputs))
    for column, different in outputs.items():
        found[column]["equal"] = len(different) == 1
        found[column]["cores"] = round(statistics.median(found[column]["cores"]), 2)
        for threads in THREADS:
            one = found[column][str(threads)]
            one["ms"] = round(statistics.median(one["ms"]), 4)
    return found


def _built(imported: api.ImportedModel, specs: tuple[str, ...], threads: int, folder: Path) -> tuple[Linked, dict]:
    target = TARGET.with_threads(threads)
    lowered, workspace = lower(imported, specs, target)
    plan = checked_plan(lowered.program, target)
    library = build_library(imported.name, lowered, plan, workspace, target, folder)
    ram = footprint_of(lowered.program, plan, workspace, 0, target).ram
    shared = sum(has_parallel_loop(kernel) for kernel in lowered.kernels.values())
    return link(library, lowered.program, target, folder), {"ram": ram, "kernels": len(lowered.kernels), "shared": shared}


def _at_once(program: Linked, inputs: dict) -> float:
    """Milliseconds a run of each of two such programs while both run."""
    copy = replace(program, folder=program.folder.with_name(f"{program.folder.name}-copy"))
    if not copy.folder.exists():
        shutil.copytree(program.folder, copy.folder)
    with ThreadPoolExecutor(2) as pool:
        reports = pool.map(lambda each: each.run([inputs], REPEATS, SECONDS)[0], (program, copy))
        return statistics.mean(report["median_ns"] / 1e6 for report in reports)


def fill(entry: Entry, file: Path) -> None:
    write_text(file, json.dumps(measure(entry), indent=1) + "\n")


def table(models: list[Entry]) -> str:
    lines, ratios = [], []
    for entry in models:
        file = RESULTS / f"{entry.name}.json"
        if not file.exists():
            continue
        found = json.loads(file.read_text(encoding="utf-8"))
        for column in [each for each in COLUMNS if each in found]:
            one, two = found[column]["1"], found[column]["2"]
            ratios.append(one["ms"] / two["ms"])
            lines.append(
                f"| {entry.name} | {column} | {one['ms']:.2f} | {two['ms']:.2f} | {ratios[-1]:.2f}× | {found[column]['cores']:.2f} "
                f"| {two['shared']} of {two['kernels']} | {format_bytes(one['ram'])} | {format_bytes(two['ram'])} "
                f"| {format_bytes(two['measured'])} | {'yes' if found[column]['equal'] else 'NO'} | {found['load']:.1f} |"
            )
    head = [
        "# One thread and two",
        "",
        "`.venv/bin/python benchmarks/threads.py` on 2 cores, x86-64-v3: milliseconds a run, turn by turn in",
        "one run. Cores: how much more two programs of one thread get done at once than one alone, in the same rounds: what",
        "others leave of the two cores, and more than that no two threads can gain. Load: of the machine when a model was",
        "begun, others' work included. Kernels: those with a loop that threads share. Same bytes: of all outputs.",
        "",
        "| model | sequence | 1 thread | 2 threads | faster | cores | kernels | ram, 1 | ram, 2 | measured, 2 | same bytes | load |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- | ---: |",
    ]
    mean = [f"| **geometric mean** | | | | **{geometric_mean(ratios):.2f}×** | | | | | | | |"] if ratios else []
    return "\n".join([*head, *lines, *mean]) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", action="append", help=f"instead of {', '.join(MODELS)}; repeatable")
    parser.add_argument("--again", action="store_true", help="forget earlier results")
    arguments = parser.parse_args()
    RESULTS.mkdir(parents=True, exist_ok=True)
    for entry in entries():
        file = RESULTS / f"{entry.name}.json"
        if entry.name not in (arguments.model or MODELS) or (file.exists() and not arguments.again):
            continue
        if wrong := alone(fill, entry, file):
            raise SystemExit(f"{entry.name}: {wrong}")
        sys.stdout.write(f"{entry.name}: {file.read_text(encoding='utf-8')}\n")
        sys.stdout.flush()
        write_text(HERE / "results" / "threads.md", table(entries()))


if __name__ == "__main__":
    main()
