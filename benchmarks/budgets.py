"""Time of libraries within budgets of ram: 1.0, 1.5 and 2 times the least, beside the least-ram library, natively.

    .venv/bin/python benchmarks/budgets.py                    ten small models
    .venv/bin/python benchmarks/budgets.py --model mtcnn-rnet --model vad

Each library is searched for and compiled by `passfit.api`; libraries of a model take turns, and the best turn counts. Rows
are kept by commit; only rows that are not there yet are measured.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from head import begin
from models import HERE, Model, geometric_mean, models
from timing import library_run, turn_by_turn

from passfit import api
from passfit.errors import PassfitError
from passfit.memory.footprint import Budget
from passfit.support.sizes import format_bytes
from passfit.support.text_files import write_text
from passfit.targets import get_target

FACTORS = (1.0, 1.5, 2.0)
#: small models of several kinds: a minute or two each
MODELS = (
    "ocr-cls", "mtcnn-onet", "mtcnn-rnet", "mtcnn-pnet", "wake-embedding", "wake-melspectrogram", "wake-alexa", "vad",
    "vad-16k-op15", "tinyocr-rec",
)  # fmt: skip
_LEAST = "least"


def measure(model: Model) -> dict:
    """By library: ram, limit, whether it fits, cycles relative to the least ram's, and milliseconds."""
    target = get_target("x86-64")
    found: dict[str, dict] = {}
    with tempfile.TemporaryDirectory(prefix="passfit-") as scratch:
        folders = {}
        limit = None
        for name in (_LEAST, *map(str, FACTORS)):
            if name != _LEAST:
                limit = int(float(name) * found[_LEAST]["ram"])
            out = folders[name] = Path(scratch) / name
            report = api.compile_model(
                str(model.file()),
                target,
                Budget(ram=limit),
                out=out,
                name=model.name,
                shapes=model.shapes,
                fix=model.fix,
            )
            found[name] = {"ram": report.best.ram, "limit": limit, "fits": report.fits, "cycles": _cycles(out)}
        for name, turns in turn_by_turn({name: library_run(folder) for name, folder in folders.items()}).items():
            found[name]["ms"] = min(turns)
    return found


def _cycles(out: Path) -> float | None:
    """Return the cycles of the chosen library relative to the least ram's, by the model; None if no budget was given."""
    tradeoff = json.loads((out / "search.json").read_text(encoding="utf-8")).get("tradeoff")
    if tradeoff is None:
        return None
    points = tradeoff["points"]
    return points[tradeoff["chosen"]]["cycles"] / points[0]["cycles"]


def table(results: Path, head: Iterable[str]) -> str:
    """Return the rows in `results` as Markdown."""
    names = [str(factor) for factor in FACTORS]
    heads = ["least ram", "ms", *(f"{what}, {name} ×" for name in names for what in ("ram", "time ×", "cycles ×"))]
    lines = [
        "# Budgets", "", *head, "",
        "The fastest library within 1.0, 1.5 and 2.0 times the least ram. Time and cycles (predicted) are relative to the",
        "least-ram library. A ram above its limit is marked.", "",
        f"| model | {' | '.join(heads)} |", "| --- |" + " ---: |" * len(heads),
    ]  # fmt: skip
    ratios: dict[str, list[float]] = {name: [] for name in names}
    for model in MODELS:
        file = results / f"{model}.json"
        if not file.exists():
            continue
        found = json.loads(file.read_text(encoding="utf-8"))
        if "failed" in found:
            lines.append(f"| {model} | {found['failed']} |" + " |" * (len(heads) - 1))
            continue
        least = found[_LEAST]
        cells = [format_bytes(least["ram"]), f"{least['ms']:.3f}"]
        for name in names:
            one = found[name]
            ratios[name].append(one["ms"] / least["ms"])
            cells += [
                format_bytes(one["ram"]) + ("" if one["fits"] else " ABOVE"),
                f"{ratios[name][-1]:.2f}",
                f"{one['cycles']:.2f}",
            ]
        lines.append(f"| {model} | {' | '.join(cells)} |")
    if any(ratios.values()):
        means = " ".join(f"| | **{geometric_mean(each):.2f}** |" for each in ratios.values())
        lines.append(f"| geometric mean ({len(ratios[names[0]])}) | | {means} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", action="append", choices=MODELS, help="only this one; repeatable")
    arguments = parser.parse_args()
    known = {model.name: model for model in models()}
    origin, results = begin("budgets")
    for name in arguments.model or MODELS:
        file = results / f"{name}.json"
        if not file.exists():
            try:
                row = measure(known[name])
            except (PassfitError, RuntimeError) as error:
                row = {"failed": f"{type(error).__name__}: {error}"}
            write_text(file, json.dumps(row, indent=1) + "\n")
            sys.stdout.write(f"{name}: {json.dumps(row)}\n")
            sys.stdout.flush()
        chosen = "".join(f" --model {each}" for each in arguments.model or ())
        text = table(results, origin.lines(f".venv/bin/python benchmarks/budgets.py{chosen}"))
        write_text(HERE / "results" / "budgets.md", text)


if __name__ == "__main__":
    main()
