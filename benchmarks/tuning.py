"""What `passfit tune` gains: libraries by the rules and tuned, beside ONNX Runtime, turn by turn in one run.

    .venv/bin/python benchmarks/tuning.py --seconds 120            results in benchmarks/results/tuning/
    .venv/bin/python benchmarks/tuning.py --model squeezenet1.1 --column whole --seconds 120 --again
    .venv/bin/python benchmarks/tuning.py --target rpi4 --target bpi-f3 --seconds 90      instructions, under emulation

As search/latency.py: one thread each, ROUNDS turns of SECONDS; of each turn the shortest run, on a machine that has other work
to do. Both libraries are of one sequence: `winner`, the one of least ram, in parts, or `whole`, the same kernels not split.
For a target that is emulated here, both are compiled as `passfit compile` does, which counts their instructions.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from entries import HERE, Entry, alone, attempted, entries, geometric_mean
from latency import REPEATS, TARGET, passes

from passfit import api
from passfit.codegen.build_library import build_library
from passfit.kernels.schedule.tuned import Tuning
from passfit.memory.placement.account import footprint_of
from passfit.memory.validation.checked_plan import checked_plan
from passfit.passes.sequence.catalogue import parse_spec
from passfit.passes.sequence.replay import replay
from passfit.passes.sequence.sequence import Sequence
from passfit.support.progress import silent
from passfit.support.sizes import format_bytes
from passfit.support.text_files import write_text
from passfit.targets import Target, get_target
from passfit.tuning.database import RULES, AdoptedTuning
from passfit.tuning.recorder import ScheduleRecorder
from passfit.tuning.tune_kernels import Clock, finds_cold_caches, tune_kernels
from passfit.tuning.tune_model import find_tuning
from passfit.verify.cases import choose_cases
from passfit.verify.compare import compare
from passfit.verify.reference import Reference
from passfit.verify.runner import link

#: the worst of search/latency.py, and some that are not
MODELS = ("squeezenet1.1", "face-scrfd", "resnet50", "vgg16", "ocr-cls")
#: small enough to be counted
COUNTED = ("wake-alexa", "wake-timer", "mtcnn-rnet", "ocr-cls")
RESULTS = HERE / "results" / "tuning"
ROUNDS, SECONDS, TOLERANCE = 7, 0.7, 1e-4


def measure(imported: api.ImportedModel, specs: tuple[str, ...], seconds: float, trials: int) -> dict:
    """Milliseconds by rules, tuned, and of ONNX Runtime; ram and error of both libraries; which kernels changed."""
    sequence = Sequence(tuple(map(parse_spec, specs)))

    def lowered(tuning: Tuning):
        return replay(sequence, imported.graph, imported.onnx, imported.name, TARGET.machine, tuning)

    census = ScheduleRecorder()
    cold = finds_cold_caches(lowered(census)[0].program.weight_bytes)
    kernels = tune_kernels(census, TARGET, Clock(seconds, lambda over: None), 0, trials, cold)
    changed = [each for each in kernels if each.choice != RULES]
    found: dict = {
        "seconds": seconds,
        "caches": "cold" if cold else "warm",
        "kernels": len(kernels),
        "by rules' parameters": sum(isinstance(each.choice, str) for each in changed),
        "by MetaSchedule": sum(not isinstance(each.choice, str) for each in changed),
        "tried": {kind: sum(each.tried.get(kind, 0) for each in kernels) for kind in ("rules", "meta-schedule")},
        "kernel ms by rules": sum(each.calls * each.before for each in kernels) / 1e6,
        "kernel ms tuned": sum(each.calls * each.after for each in kernels) / 1e6,
    }
    cases = choose_cases(imported.onnx, 0, 1, TOLERANCE)
    reference = Reference(imported.onnx, optimized=True)
    columns = {"rules": Tuning(), "tuned": Tuning({each.fingerprint: each.spec for each in changed})}
    with tempfile.TemporaryDirectory(prefix="passfit-") as scratch:
        programs = {}
        for column, tuning in columns.items():
            folder = Path(scratch) / column
            folder.mkdir()
            made, workspace = lowered(tuning)
            plan = checked_plan(made.program, TARGET)
            library = build_library(imported.name, made, plan, workspace, TARGET, folder)
            programs[column] = link(library, made.program, TARGET, folder)
            _, outputs = programs[column].run([case.inputs for case in cases])
            error = compare(outputs, cases, TOLERANCE).relative
            ram = footprint_of(made.program, plan, workspace, 0, TARGET).ram
            found[column] = {"ram": ram, "error": error, "ms": []}
        found["onnxruntime"] = {"ms": []}
        for _ in range(ROUNDS):
            found["onnxruntime"]["ms"].append(least_of(lambda: reference(cases[0].inputs)))
            for column, program in programs.items():
                report, _ = program.run([cases[0].inputs], REPEATS, SECONDS)
                found[column]["ms"].append(report["min_ns"] / 1e6)
    return found


def counted(imported: api.ImportedModel, specs: tuple[str, ...], target: Target, seconds: float) -> dict:
    """Instructions a run by rules and tuned; ram and error of both libraries; which kernels changed."""
    sequence = Sequence(tuple(map(parse_spec, specs)))
    database = find_tuning(imported, sequence, target, api.TuneSettings(seconds), silent)
    found: dict = {
        "seconds": seconds,
        "kernels": len(database.kernels),
        "taken": len(database.choices),
        "tried": sum(each.tried.get("rules", 0) for each in database.kernels),
    }
    for column, tuning in (("rules", AdoptedTuning()), ("tuned", AdoptedTuning(Tuning(database.choices)))):
        with tempfile.TemporaryDirectory(prefix="passfit-") as folder:
            report = api.compile_imported(imported, target, out=Path(folder), sequence=sequence, tuning=tuning)
        found[column] = {
            "ram": report.best.ram, "error": report.measured.max_rel_error, "instructions": report.measured.instructions
        }  # fmt: skip
    return found


def least_of(run: Callable[[], object]) -> float:
    """Milliseconds of the shortest run, among as many as a library has."""
    run()
    times, end = [], time.perf_counter() + SECONDS
    while not times or (time.perf_counter() < end and len(times) < REPEATS):
        started = time.perf_counter()
        run()
        times.append(time.perf_counter() - started)
    return min(times) * 1e3


def fill(entry: Entry, column: str, target: str | None, seconds: float, trials: int, file: Path) -> None:
    """Tune and measure a model, and write its file. What goes wrong is its result."""

    def tuned() -> dict:
        specs = passes(entry, column)
        if specs is None:
            return {"failed": "its winner is not known"}
        imported = entry.load(entry.fetched())
        return counted(imported, specs, get_target(target), seconds) if target else measure(imported, specs, seconds, trials)

    write_text(file, json.dumps(attempted(tuned), indent=1) + "\n")


def table() -> str:
    lines = [
        "# Milliseconds a run, by the rules and tuned, beside ONNX Runtime's",
        "",
        "`.venv/bin/python benchmarks/tuning.py --seconds 90`: one thread each, the same machine and instruction set (x86-64-v3), turn",
        "by turn in one run; the shortest run of 7 turns, and in parentheses that of the worst turn: the two cores were",
        "busy with other work, which is what lies between them. ×: ÷ ONNX Runtime. Tried: schedules measured, by the rules'",
        "parameters and by MetaSchedule; taken: the kernels of all that are not as by the rules, of each kind. Ram: of",
        "the tuned library, never more than by the rules; the sequence is one. Warm, cold: the caches kernels were timed",
        "with. (With warm ones, ResNet-50 took 128.33 by the rules and 155.72 tuned.)",
        "",
        "| model | sequence | budget | ONNX Runtime | by rules | tuned | rules ÷ tuned | tried | taken | ram | error tuned |",
        "| --- | --- |" + " ---: |" * 9,
    ]
    for file in sorted(RESULTS.glob("*.json")):
        model, _, column = file.stem.rpartition("-")
        found = json.loads(file.read_text(encoding="utf-8"))
        if "failed" in found:
            lines.append(f"| {model} | {column} | {found['failed']} | | | | | | | | |")
            continue
        runtime = min(found["onnxruntime"]["ms"])
        times = {each: found[each]["ms"] for each in ("rules", "tuned")}
        cells = [f"{min(t):.2f} ({max(t):.2f}), {min(t) / runtime:.2f}×" for t in times.values()]
        tried, taken = found["tried"], (found["by rules' parameters"], found["by MetaSchedule"])
        lines.append(
            f"| {model} | {column} | {found['seconds']:g} s, {found.get('caches', 'warm')} | {runtime:.2f} ({max(found['onnxruntime']['ms']):.2f}) "
            f"| {cells[0]} | {cells[1]} | {min(times['rules']) / min(times['tuned']):.2f} "
            f"| {tried['rules']} + {tried['meta-schedule']} | {taken[0]} + {taken[1]} of {found['kernels']} "
            f"| {format_bytes(found['tuned']['ram'])} | {found['tuned']['error']:.1e} |"
        )
    return "\n".join([*lines, *table_of_counts()]) + "\n"


def table_of_counts() -> list[str]:
    lines = [
        "",
        "## Instructions a run, under emulation",
        "",
        "`.venv/bin/python benchmarks/tuning.py --target bpi-f3 --target rpi4 --target visionfive2 --seconds 90`: the whole",
        "library as `passfit compile` counts it, by the rules and with what `passfit tune` found by counting kernels one by",
        "one, on a busy machine; outputs of both agree with ONNX Runtime's (error: the tuned one's). A count is no time.",
        "",
        "| model | sequence | target | budget | by rules | tuned | rules ÷ tuned | tried | taken | ram | error tuned |",
        "| --- | --- | --- |" + " ---: |" * 8,
    ]
    ratios: dict[str, list[float]] = {}
    for file in sorted(RESULTS.glob("*/*.json")):
        target, (model, _, column) = file.parent.name, file.stem.rpartition("-")
        found = json.loads(file.read_text(encoding="utf-8"))
        if "failed" in found:
            lines.append(f"| {model} | {column} | {target} | {found['failed']} | | | | | | | |")
            continue
        one, other = (found[each]["instructions"] for each in ("rules", "tuned"))
        ratios.setdefault(target, []).append(one / other)
        lines.append(
            f"| {model} | {column} | {target} | {found['seconds']:g} s | {one} | {other} | {one / other:.2f} | {found['tried']} "
            f"| {found['taken']} of {found['kernels']} | {format_bytes(found['tuned']['ram'])} | {found['tuned']['error']:.1e} |"
        )
    for target, values in ratios.items():
        lines.append(f"| **geometric mean** ({len(values)}) | | {target} | | | | **{geometric_mean(values):.2f}** | | | | |")
    return lines if ratios else []


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", action="append", help="only this one; repeatable")
    parser.add_argument("--column", choices=("whole", "winner"), default="winner")
    parser.add_argument("--target", action="append", help="one that is emulated here; repeatable")
    parser.add_argument("--seconds", type=float, default=120.0, help="to tune each model in")
    parser.add_argument("--trials", type=int, default=64, help="of MetaSchedule, for each kernel")
    parser.add_argument("--again", action="store_true", help="forget earlier results")
    arguments = parser.parse_args()
    RESULTS.mkdir(parents=True, exist_ok=True)
    known = {entry.name: entry for entry in entries()}
    for target in arguments.target or (None,):
        for model in arguments.model or (COUNTED if target else MODELS):
            file = RESULTS / (target or "") / f"{model}-{arguments.column}.json"
            file.parent.mkdir(exist_ok=True)
            if not file.exists() or arguments.again:
                if wrong := alone(fill, known[model], arguments.column, target, arguments.seconds, arguments.trials, file):
                    write_text(file, json.dumps({"failed": wrong}) + "\n")
                write_text(HERE / "results" / "tuning.md", table())
            sys.stdout.write(f"{file.stem}: {file.read_text(encoding='utf-8')}")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
