"""Milliseconds a run, beside ONNX Runtime's: one thread, one machine, one instruction set, one run of this file.

    .venv/bin/python benchmarks/search/latency.py                        all of it; results in benchmarks/results/latency/
    .venv/bin/python benchmarks/search/latency.py --model ocr-cls --again

A library is a program that takes its turn with ONNX Runtime, ROUNDS times, each for SECONDS; of each the median of a
turn counts, and the least of the turns. `winner`: what the memory benchmark found (its column `everything`), in parts;
`whole`: the same kernels, whole (where it is not known, those of tvm-default).
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

from entries import HERE, Entry, alone, attempted, entries, missing
from latency_table import COLUMNS, RESULTS, row, table
from memory_table import known_of

from passfit import api
from passfit.codegen.build_library import build_library
from passfit.kernels.lower.lower import Lowered
from passfit.memory.placement.account import footprint_of
from passfit.memory.validation.checked_plan import checked_plan
from passfit.passes.base import ModulePass
from passfit.passes.sequence.catalogue import parse_spec
from passfit.passes.sequence.replay import replay
from passfit.passes.sequence.sequence import TVM_DEFAULT, Sequence
from passfit.support.text_files import write_text
from passfit.targets import Target, get_target
from passfit.verify.inputs import make_input
from passfit.verify.reference import Reference
from passfit.verify.runner import Linked, link

#: what this machine is, as far as a target can say it: ONNX Runtime finds out by itself
TARGET = get_target("x86-64")
ROUNDS, SECONDS, REPEATS = 3, 0.5, 60


def passes(entry: Entry, column: str) -> tuple[str, ...] | None:
    """The sequence of a column; None where the memory benchmark has not found it."""
    winner = tuple(known_of(entry).get("everything", {}).get("passes", ()))
    if column == "winner":
        return winner or None
    specs = [spec for spec in winner if isinstance(parse_spec(spec), ModulePass)]
    return (*(specs or TVM_DEFAULT), "share", "order")


def measure(imported: api.ImportedModel, specs: dict[str, tuple[str, ...]]) -> dict:
    """By column, and for ONNX Runtime: milliseconds; by column ram and workspace, and the seconds to lower and build."""
    inputs = make_input(imported.onnx, 0, 0)
    reference = Reference(imported.onnx, optimized=True)
    found: dict = {}
    with tempfile.TemporaryDirectory(prefix="passfit-") as scratch:
        programs: dict[str, Linked] = {}
        for column, each in specs.items():
            folder = Path(scratch) / column
            folder.mkdir()
            started = time.monotonic()
            lowered, workspace = lower(imported, each)
            plan = checked_plan(lowered.program, TARGET)
            library = build_library(imported.name, lowered, plan, workspace, TARGET, folder)
            seconds = round(time.monotonic() - started, 1)
            programs[column] = link(library, lowered.program, TARGET, folder)
            ram = footprint_of(lowered.program, plan, workspace, 0, TARGET).ram
            found[column] = {"ram": ram, "workspace": workspace, "seconds": seconds, "ms": []}
        found["onnxruntime"] = {"ms": []}
        for _ in range(ROUNDS):
            found["onnxruntime"]["ms"].append(median_of(lambda: reference(inputs)))
            for column, program in programs.items():
                report, _ = program.run([inputs], REPEATS, SECONDS)
                found[column]["ms"].append(report["median_ns"] / 1e6)
    for each in found.values():
        each["ms"] = round(min(each["ms"]), 4)
    return found


def lower(imported: api.ImportedModel, specs: tuple[str, ...], target: Target = TARGET) -> tuple[Lowered, int]:
    sequence = Sequence(tuple(map(parse_spec, specs)))
    return replay(sequence, imported.graph, imported.onnx, imported.name, target.machine)


def median_of(run) -> float:
    run()
    times, end = [], time.perf_counter() + SECONDS
    while not times or (time.perf_counter() < end and len(times) < REPEATS):
        started = time.perf_counter()
        run()
        times.append(time.perf_counter() - started)
    return statistics.median(times) * 1e3


def fill(entry: Entry, file: Path) -> None:
    """Measure a model, and write its file. What goes wrong is its result."""

    def measured() -> dict:
        columns = {column: specs for column in COLUMNS if (specs := passes(entry, column)) is not None}
        return measure(entry.load(entry.fetched()), columns)

    write_text(file, json.dumps(attempted(measured), indent=1) + "\n")


def main() -> None:
    for entry, file in missing(__doc__.splitlines()[0], RESULTS):
        if wrong := alone(fill, entry, file):
            write_text(file, json.dumps({"failed": wrong}) + "\n")
        sys.stdout.write(f"{entry.name}: {row(json.loads(file.read_text(encoding='utf-8')))}\n")
        sys.stdout.flush()
        write_text(HERE / "results" / "latency.md", table(entries()))


if __name__ == "__main__":
    main()
