"""What layouts chosen by region give whole models: libraries of planes, and with what `passfit tune` chooses.

    .venv/bin/python benchmarks/layout_models.py               results in benchmarks/results/layout/
    .venv/bin/python benchmarks/layout_models.py --model ocr-cls --again

One thread, x86-64-v3, the rules' schedules in both: what tuning kernels gives is not in it. ROUNDS turns of SECONDS, of
each the shortest run. Both libraries are of one sequence: `whole`, or `winner`, the one of least ram, in parts.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from entries import HERE, Entry, alone, attempted, geometric_mean, missing
from latency import REPEATS, TARGET, passes

from passfit import api
from passfit.codegen.build_library import build_library
from passfit.memory.placement.account import footprint_of
from passfit.memory.validation.checked_plan import checked_plan
from passfit.passes.sequence.catalogue import parse_spec
from passfit.passes.sequence.replay import replay
from passfit.passes.sequence.sequence import Sequence
from passfit.support.progress import silent
from passfit.support.sizes import format_bytes
from passfit.support.text_files import write_text
from passfit.tuning.measure.choose_harness import HarnessFactory
from passfit.tuning.tune_kernels import Clock, finds_cold_caches
from passfit.tuning.tune_model import find_layout
from passfit.verify.cases import choose_cases
from passfit.verify.compare import compare
from passfit.verify.runner import link

COLUMNS = ("whole", "winner")
RESULTS = HERE / "results" / "layout"
#: more seconds than measuring all kernels takes
BUDGET = 600.0
ROUNDS, SECONDS, TOLERANCE = 7, 0.5, 1e-4


def measure(imported: api.ImportedModel, specs: tuple[str, ...]) -> dict:
    """What was chosen and predicted; milliseconds, ram and error of both libraries."""
    sequence = Sequence.parse(specs)
    arguments = (sequence, imported.graph, imported.onnx, imported.name, TARGET.machine)
    plain = replay(*arguments)
    cold = finds_cold_caches(plain[0].program.weight_bytes)
    started = time.monotonic()
    clock = Clock(BUDGET, lambda over: None)
    laid = find_layout(imported, sequence, TARGET, HarnessFactory(TARGET, 0, cold), clock, plain, silent)
    found: dict = {
        "seconds": round(time.monotonic() - started, 1),
        "caches": "cold" if cold else "warm",
        "results": laid.spec.count("+") + 1 if laid.spec else 0,
        "steps": len(plain[0].program.steps),
        "tried": laid.tried,
        "predicted": [laid.before, laid.after],
        "taken": laid.taken,
        "note": laid.note,
    }
    if laid.whole is None:
        return found
    # what was found, taken or not
    layout = parse_spec(laid.spec)
    cases = choose_cases(imported.onnx, 0, 1, TOLERANCE)
    with tempfile.TemporaryDirectory(prefix="passfit-") as scratch:
        programs = {}
        lowered = {"planes": plain, "chosen": replay(*arguments, layout=layout)}
        for column, (program, workspace) in lowered.items():
            folder = Path(scratch) / column
            folder.mkdir()
            plan = checked_plan(program.program, TARGET)
            library = build_library(imported.name, program, plan, workspace, TARGET, folder)
            programs[column] = link(library, program.program, TARGET, folder)
            _, outputs = programs[column].run([case.inputs for case in cases])
            ram = footprint_of(program.program, plan, workspace, 0, TARGET).ram
            found[column] = {"ram": ram, "error": compare(outputs, cases, TOLERANCE).relative, "ms": []}
        for _ in range(ROUNDS):
            for column, program in programs.items():
                report, _ = program.run([cases[0].inputs], REPEATS, SECONDS)
                found[column]["ms"].append(report["min_ns"] / 1e6)
    return found


def fill(entry: Entry, file: Path) -> None:
    """Measure a model, and write its file. What goes wrong is its result."""

    def measured(column: str) -> dict:
        specs = passes(entry, column)
        return {"failed": "not known"} if specs is None else measure(entry.load(entry.fetched()), specs)

    found = {column: attempted(partial(measured, column)) for column in COLUMNS}
    write_text(file, json.dumps(found, indent=1) + "\n")


def table() -> str:
    lines = [
        "# Layouts chosen by region: milliseconds a run",
        "",
        "`.venv/bin/python benchmarks/layout_models.py`: one thread, x86-64-v3, kernels by the rules in both",
        f"libraries, turn by turn in one run, the shortest of {ROUNDS} turns; in brackets that of the worst turn: the",
        "two cores had other work to do. Channels last: the results that lie so, of all steps. Tried: kernels measured",
        "in other layouts, and the seconds all of it took. Predicted: planes ÷ chosen in the sum of kernels measured",
        "one by one. `winner` is in parts: what lies around kernels that run as one stays planes. Not taken: beside",
        "the library of planes, in a run of its own, it was no faster. What stays planes counts as 1 in the mean.",
        "",
        "| model | sequence | channels last | tried | planes | chosen | predicted | planes ÷ chosen | ram before "
        "| after | error |",
        "| --- | --- |" + " ---: |" * 9,
    ]
    ratios: dict[str, list[float]] = {column: [] for column in COLUMNS}
    for file in sorted(RESULTS.glob("*.json")):
        for column, found in json.loads(file.read_text(encoding="utf-8")).items():
            lines.append(f"| {file.stem} | {column} | {_cells(found)} |")
            if "failed" not in found:
                ratios[column].append(_ratio(found) if found["taken"] else 1.0)
    for column, values in ratios.items():
        if values:
            mean = f"**{geometric_mean(values):.2f}**"
            lines.append(f"| **geometric mean** ({len(values)}) | {column} | | | | | | {mean} | | | |")
    return "\n".join(lines) + "\n"


def _cells(found: dict) -> str:
    if "failed" in found:
        return f"{found['failed']} | | | | | | | | "
    tried = f"{found['tried']}, {found['seconds']:.0f} s"
    if "planes" not in found:
        return f"0 of {found['steps']} | {tried} | {found['note']} | | | | | | "
    one, other = found["planes"], found["chosen"]
    times = " | ".join(f"{min(each['ms']):.2f} ({max(each['ms']):.2f})" for each in (one, other))
    before, after = found["predicted"]
    taken = "" if found["taken"] else ", not taken"
    return (
        f"{found['results']} of {found['steps']}{taken} | {tried} | {times} | {before / after:.2f} "
        f"| {_ratio(found):.2f} | {format_bytes(one['ram'])} | {format_bytes(other['ram'])} | {other['error']:.1e}"
    )


def _ratio(found: dict) -> float:
    return min(found["planes"]["ms"]) / min(found["chosen"]["ms"])


def main() -> None:
    for entry, file in missing(__doc__.splitlines()[0], RESULTS):
        if wrong := alone(fill, entry, file):
            write_text(file, json.dumps({column: {"failed": wrong} for column in COLUMNS}) + "\n")
        sys.stdout.write(f"{entry.name}: {file.read_text(encoding='utf-8')}")
        sys.stdout.flush()
        write_text(HERE / "results" / "layout_models.md", table())


if __name__ == "__main__":
    main()
