"""Compile and time all models with another checkout and with this one; write results/before_after.md.

    .venv/bin/python benchmarks/before_after.py --before PATH                    PATH: a checkout with its own .venv
    .venv/bin/python benchmarks/before_after.py --before PATH --model ocr-cls    one model; its table is printed, not written
    .venv/bin/python benchmarks/before_after.py --before PATH --compile          compile alone, where the machine is not quiet

Libraries and rows are kept in benchmarks/.raw, by commit, machine and versions: an interrupted run goes on.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from head import begin, publish
from main_tables import LIMIT, NARROW, run_passfit, small_first, timed
from models import Model, geometric_mean, models

from passfit.support.sizes import format_bytes

SIDES = ("before", "after")
#: columns of ratios, after ÷ before
RATIOS = ("ram", "flash", "code", "time", "processor")


def compile_both(model: Model, pythons: Mapping[str, str], folder: Path) -> dict:
    """Compile a model by the Python of each side. Returns the row; one with `failed` gives the reason."""
    row: dict = {}
    for side in SIDES:
        out = folder / model.name / side
        with tempfile.TemporaryDirectory(prefix="passfit-bench-") as scratch:
            arguments = ["compile", *model.arguments(), f"--target={NARROW}", f"--out={out}"]
            failed, spent = run_passfit(arguments, Path(scratch), LIMIT, pythons[side])
        if failed:
            return {"failed": f"{side}: {failed}"}
        best = json.loads((out / "footprint.json").read_text(encoding="utf-8"))["best"]
        row[side] = {part: best[part] for part in ("ram", "flash", "code")} | {"processor": spent["processor"]}
    return row


def compare(row: Mapping) -> dict[str, float]:
    """Return after ÷ before of each of RATIOS that is known."""
    ratios = {name: row["after"][name] / row["before"][name] for name in RATIOS if name in row["after"]}
    if "before" in row.get("latency", {}):
        ratios["time"] = min(row["latency"]["after"]) / min(row["latency"]["before"])
    return ratios


def table(rows: Mapping[Model, Mapping], head: Iterable[str], before: str) -> str:
    """Return before_after.md: ratios of memory, time and work of the compiler by model, with their geometric means."""
    lines = [
        "# Before and after", "", *head, f"* before: {before}", "",
        f"`passfit compile`, all defaults, for {NARROW}; ratios: after ÷ before. Time: of a run, turn by turn in one process, the",
        "best turn's median. Processor: seconds of the compilation, of all its processes.", "",
        "| model | ram before | ram after | ram | flash | code | time | processor |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]  # fmt: skip
    found: dict[str, list[float]] = {}
    for model, row in rows.items():
        if "failed" in row:
            lines.append(f"| {model.title} | failed: {' '.join(row['failed'].split())} | | | | | | |")
            continue
        ratios = compare(row)
        for name, ratio in ratios.items():
            found.setdefault(name, []).append(ratio)
        sizes = " | ".join(format_bytes(row[side]["ram"]) for side in SIDES)
        lines.append(f"| {model.title} | {sizes} | {_cells(ratios)} |")
    for title, of in (("geometric mean", geometric_mean), ("largest", max)):
        lines.append(f"| **{title}** | | | {_cells({name: of(ratios) for name, ratios in found.items()})} |")
    return "\n".join(lines) + "\n"


def _cells(ratios: Mapping[str, float]) -> str:
    return " | ".join(f"{ratios[name]:.3f}" if name in ratios else "–" for name in RATIOS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--before", type=Path, required=True, help="a checkout of the earlier commit, with its .venv")
    parser.add_argument("--model", action="append", help="only this one, and print its table; repeatable")
    parser.add_argument("--compile", action="store_true", help="compile alone; a later run times the libraries")
    arguments = parser.parse_args()
    pythons = {"before": str(arguments.before.resolve() / ".venv/bin/python"), "after": sys.executable}
    origin, folder = begin("before_after")
    chosen = [model for model in models() if not arguments.model or model.name in arguments.model]
    rows: dict[Model, dict] = {}
    for model in small_first(chosen):
        file = folder / f"{model.name}.json"
        row = json.loads(file.read_text(encoding="utf-8")) if file.exists() else compile_both(model, pythons, folder)
        if not arguments.compile and "failed" not in row and "latency" not in row:
            row["latency"] = timed(model, {side: folder / model.name / side for side in SIDES})
        file.write_text(json.dumps(row, indent=1) + "\n", encoding="utf-8")
        rows[model] = row
        print(f"{model.name}: {row.get('failed') or compare(row)}", flush=True)
    ordered = {model: rows[model] for model in chosen}
    commit = ["git", "-C", str(arguments.before), "log", "-1", "--abbrev=12", "--format=%h, %cs"]
    before = subprocess.run(commit, capture_output=True, text=True, check=True).stdout.strip()
    command = ".venv/bin/python benchmarks/before_after.py --before PATH"
    text = table(ordered, origin.lines(command), before)
    publish("before_after", text, whole=not arguments.model and not arguments.compile)


if __name__ == "__main__":
    main()
