"""Compile libraries by `--opt size`, `balanced` and `speed`: bytes of code, and time; write results/code_size.md.

    .venv/bin/python benchmarks/code_size.py                     MODELS, half a minute each
    .venv/bin/python benchmarks/code_size.py --model ocr-cls     one model; its table is printed, not written

All libraries of a model replay SEQUENCE, and take turns in one process. Rows are kept by commit, machine and versions.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from head import begin, publish
from main_tables import LIMIT, run_passfit, timed
from models import Model, geometric_mean, models

from passfit.passes.sequence.sequence import TVM_DEFAULT

OPTS = ("size", "balanced", "speed")
#: small models of several kinds
MODELS = ("mtcnn-onet", "mtcnn-rnet", "wake-melspectrogram", "wake-alexa", "vad")
#: one sequence for all
SEQUENCE = (*TVM_DEFAULT, "share", "order")


def measure(model: Model) -> dict:
    """Compile a model by each `--opt`, and time the libraries. Returns its row; one with `failed` gives the reason."""
    with tempfile.TemporaryDirectory(prefix="passfit-bench-") as name:
        scratch, code, ram = Path(name), {}, {}
        sequence = scratch / "sequence.json"
        sequence.write_text(json.dumps({"passes": SEQUENCE}) + "\n", encoding="utf-8")
        for opt in OPTS:
            command = ["compile", *model.arguments(), "--target=x86-64", f"--sequence={sequence}", f"--opt={opt}"]
            failed, _ = run_passfit([*command, f"--out={scratch / opt}"], scratch, LIMIT)
            if failed:
                return {"failed": f"{opt}: {failed}"}
            best = json.loads((scratch / opt / "footprint.json").read_text(encoding="utf-8"))["best"]
            code[opt], ram[opt] = best["code"], best["arena"] + best["workspace"]
        latency = timed(model, {opt: scratch / opt for opt in OPTS}, least=True)
    return latency if "failed" in latency else {"code": code, "ram": ram, "latency": latency}


def table(rows: Mapping[str, Mapping], head: Iterable[str]) -> str:
    """Return code_size.md: code and time of each `--opt`, and their ratios to those of `balanced`."""
    heads = ["code, balanced", "× size", "× speed", "ms, balanced", "× size", "× speed", "ram"]
    lines = [
        "# Bytes of code", "", *head, "",
        "Bytes of code of libraries of one sequence, and milliseconds of processor time of the shortest run, natively, turn by turn",
        "in one process: `balanced`, and `size` and `speed` relative to it. Ram: arena and workspace.", "",
        f"| model | {' | '.join(heads)} |", "| --- |" + " ---: |" * len(heads),
    ]  # fmt: skip
    ratios: dict[tuple[str, str], list[float]] = {}
    for name, row in rows.items():
        if "failed" in row:
            lines.append(f"| {name} | failed: {' '.join(row['failed'].split())} |" + " |" * (len(heads) - 1))
            continue
        ms = {opt: min(row["latency"][opt]) for opt in OPTS}
        cells = []
        for what, shown, costs in (("code", "{:,}", row["code"]), ("time", "{:.3f}", ms)):
            cells.append(shown.format(costs["balanced"]))
            for opt in ("size", "speed"):
                ratio = costs[opt] / costs["balanced"]
                ratios.setdefault((what, opt), []).append(ratio)
                cells.append(f"{ratio:.2f}")
        equal = len(set(row["ram"].values())) == 1
        lines.append(f"| {name} | {' | '.join(cells)} | {'equal' if equal else row['ram']} |")
    if ratios:
        means = [f"**{geometric_mean(each):.2f}**" for each in ratios.values()]
        count = len(next(iter(ratios.values())))
        lines.append(f"| geometric mean ({count}) | | {means[0]} | {means[1]} | | {means[2]} | {means[3]} | |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", action="append", help=f"instead of {', '.join(MODELS)}; repeatable")
    arguments = parser.parse_args()
    origin, folder = begin("code_size")
    rows = {}
    for model in models():
        if model.name not in (arguments.model or MODELS):
            continue
        file = folder / f"{model.name}.json"
        if not file.exists():
            file.write_text(json.dumps(measure(model), indent=1) + "\n", encoding="utf-8")
        rows[model.title] = json.loads(file.read_text(encoding="utf-8"))
        print(f"{model.name}: {json.dumps(rows[model.title])}", flush=True)
    publish("code_size", table(rows, origin.lines(".venv/bin/python benchmarks/code_size.py")), not arguments.model)


if __name__ == "__main__":
    main()
