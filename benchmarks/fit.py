"""Time `passfit fit` on the models of models.toml, and build its predictions; write results/fit.md.

    .venv/bin/python benchmarks/fit.py [DIR] [--only NAME]      default of DIR: ../shared/mlperf_tiny

Each model is fitted to the whole catalogue, with nothing known of it: PASSFIT_STORE is off. Then SAMPLE, pairs of a model and
a target, is predicted and built by `passfit fit --target TARGET --build`.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import onnx
from head import begin
from mlperf_tiny import FOLDER, INPUTS
from models import HERE, Model, models

#: pairs that are built: float and int8, small and large, every kind of processor
SAMPLE = (
    ("kws-int8", "stm32f446"), ("kws-int8", "esp32-c3"), ("ad-int8", "nrf52840"), ("ad-float", "rp2040"), ("ic-int8", "rp2350"),
    ("vww-int8", "stm32f746"), ("mtcnn-rnet", "esp32-c6"), ("mtcnn-onet", "stm32h743"), ("wake-embedding", "rpi4"), ("ocr-cls", "x86-64"),
)  # fmt: skip
_PARTS = ("ram", "flash", "stack", "code")


def tiny(folder: Path) -> dict[str, Model]:
    """Return the models of MLPerf Tiny by name; none if their folder is not there."""
    return {
        file.stem: Model(
            file.stem,
            str(file),
            shapes={onnx.load(file).graph.input[0].name: [1, *INPUTS[file.stem.partition("-")[0]]]},
        )
        for file in sorted(folder.glob("*.onnx"))
    }


def run(model: Model, *options: str) -> dict:
    """Run `passfit fit --json`; return its object, its wall seconds and the processor seconds of all its processes."""
    environment = os.environ | {"PASSFIT_STORE": "off"}
    with tempfile.TemporaryDirectory(prefix="passfit-bench-") as scratch:
        before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        command = [sys.executable, "-m", "passfit.cli", "fit", *model.arguments(), "--json", *options]
        done = subprocess.run(command, cwd=scratch, env=environment, capture_output=True, text=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = {
        "wall": time.monotonic() - started,
        "processor": after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime,
    }
    if not done.stdout:
        return seconds | {"failed": " ".join(done.stderr.split())[-200:]}
    return seconds | json.loads(done.stdout)


def fitted_line(name: str, found: dict) -> str:
    times = f"{found['processor']:.1f} | {found['wall']:.1f}"
    if "failed" in found:
        return f"| {name} | {times} | failed: {found['failed']} | | |"
    by_name = {each["target"]: each for each in found["verdicts"]}
    smallest = by_name[found["smallest"]] if found["smallest"] else None
    sizes = f"{smallest['ram']:,} | {smallest['flash']:,}" if smallest else " | "
    return f"| {name} | {times} | {found['smallest'] or 'none'} | {sizes} |"


def built_lines(name: str, target: str, found: dict, whole: dict | None = None) -> tuple[str, float | None]:
    """Return the row of a pair, and its larger error of ram and flash; None if it failed.

    `whole` is what was predicted for all targets at once, if that is known.
    """
    if "failed" in found or not found["built"]:
        return f"| {name} | {target} | failed: {found.get('failed', 'not built')} |" + " |" * 10, None
    (verdict,), built = found["verdicts"], found["built"]["best"]
    one = {
        "ram": verdict["ram"],
        "flash": verdict["flash"],
        "stack": verdict["parts"]["stack"],
        "code": verdict["parts"]["code"],
    }
    if not one["stack"]:  # with an operating system, where it is not predicted
        built = built | {"ram": built["ram"] - built["stack"]}
    errors = {part: one[part] / built[part] - 1 if built[part] else 0.0 for part in _PARTS}
    cells = " | ".join(f"{one[part]:,} | {built[part]:,} | {errors[part]:+.1%}" for part in ("ram", "flash"))
    rest = f"{one['stack']:,} | {built['stack']:,} | {errors['code']:+.1%}"
    return f"| {name} | {target} | {cells} | {rest} | {_at_once(target, built, whole)} |", max(
        abs(errors["ram"]), abs(errors["flash"])
    )


def _at_once(target: str, built: dict, whole: dict | None) -> str:
    """Return the errors of the sizes that the table of all targets shows; ≈ where it marks them."""
    if whole is None or "failed" in whole:
        return " | "
    shown = next(each for each in whole["verdicts"] if each["target"] == target)
    mark = "≈ " if shown["parts"]["near"] else ""
    return " | ".join(f"{mark}{shown[part] / built[part] - 1:+.1%}" for part in ("ram", "flash"))


def page(times: Sequence[tuple[str, dict]], built: Sequence[tuple[str, str, dict]], opening: Iterable[str]) -> str:
    """Return fit.md."""
    rows = [built_lines(*each, dict(times).get(each[0])) for each in built]
    errors = [error for _, error in rows if error is not None]
    within = sum(error <= 0.05 for error in errors)
    processor = [found["processor"] for _, found in times]
    lines = [
        "# Which targets a model fits, predicted", "", *opening, "",
        "Predictions of `passfit fit --target TARGET` beside the library or image of the same sequence. Bytes. The stack counts as ram",
        "without an operating system. The last two columns are the errors of the table of all targets at once, whose plan was",
        "searched for the smallest target, and whose sizes may be estimated (≈). The sequence is the quick one: `passfit optimize`",
        "may find less ram, so that a smaller target holds the model.", "",
        "## Predicted beside built", "",
        "| model | target | ram predicted | built | error | flash predicted | built | error | stack predicted | built | error of code | all at once: ram | flash |",
        "| --- | --- |" + " ---: |" * 11, *(row for row, _ in rows), "",
        f"Both ram and flash are within 5 % on {within} of {len(rows)}; the largest error is {max(errors, default=0):.1%}.", "",
        "## Time for all targets", "",
        "Seconds with an empty store, in all processes, start of Python and import of TVM included; wall seconds are those of this",
        "machine, with the other work of its head. The smallest target that fits, with the model's sizes there.", "",
        "| model | processor s | wall s | smallest that fits | ram | flash |", "| --- | ---: | ---: | --- | ---: | ---: |",
        *(fitted_line(*each) for each in times), "",
        f"{len(times)} models; processor seconds: median {sorted(processor)[len(processor) // 2]:.1f}, most {max(processor):.1f}, "
        f"at most 10 for {sum(each <= 10 for each in processor)} of them.",
    ] if times or rows else []  # fmt: skip
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument(
        "folder", nargs="?", type=Path, default=FOLDER, metavar="DIR", help="folder of the ONNX models of MLPerf Tiny"
    )
    parser.add_argument("--only", action="append", help="one model; repeatable; no page is written")
    arguments = parser.parse_args()
    origin, folder = begin("fit")
    known = {each.name: each for each in models() if each.source} | tiny(arguments.folder)

    def kept(row: str, name: str, *options: str) -> dict:
        place = folder / f"{row}.json"
        if not place.exists():
            place.write_text(json.dumps(run(known[name], *options)) + "\n", encoding="utf-8")
        return json.loads(place.read_text(encoding="utf-8"))

    chosen = [name for name in known if not arguments.only or name in arguments.only]
    built, times = [], []
    for name, target in SAMPLE:
        if name in chosen:
            built.append((name, target, kept(f"{name} {target}", name, f"--target={target}", "--build")))
            print(built_lines(*built[-1])[0], flush=True)
    for name in chosen:
        times.append((name, kept(name, name)))
        print(fitted_line(*times[-1]), flush=True)
    if not arguments.only:
        opening = origin.lines(".venv/bin/python benchmarks/fit.py")
        (HERE / "results" / "fit.md").write_text(page(times, built, opening), encoding="utf-8")


if __name__ == "__main__":
    main()
