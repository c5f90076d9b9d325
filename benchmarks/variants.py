"""Time variants of a library beside the default one: whole kernels, two threads, tuned; write results/variants.md.

    .venv/bin/python benchmarks/variants.py                     MODELS, each in some minutes
    .venv/bin/python benchmarks/variants.py --model ocr-cls     one model; its table is printed, not written

All variants but `whole` replay the default's sequence. Rows are kept by commit, machine and versions.
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
from timing import fastest

from passfit.support.sizes import format_bytes

MODELS = ("mtcnn-onet", "ocr-cls", "squeezenet1.1", "mobilenet_v2")
#: seconds to tune a model in
SECONDS = 60
VARIANTS = ("default", "whole", "two threads", "tuned")


def measure(model: Model, seconds: int) -> dict:
    """Compile all variants of a model and time them turn by turn. Returns the row; one with `failed` gives the reason."""
    with tempfile.TemporaryDirectory(prefix="passfit-bench-") as name:
        scratch = Path(name)
        folders = {variant: scratch / variant.replace(" ", "-") for variant in VARIANTS}
        replay = f"--sequence={folders['default']}/sequence.json"
        tuning = scratch / "tuning.json"
        target = [*model.arguments(), "--target=x86-64"]
        steps = [
            ["compile", *target, f"--out={folders['default']}"],
            ["compile", *target, f"--out={folders['whole']}", "--no-splits"],
            ["compile", *target, f"--out={folders['two threads']}", replay, "--threads=2"],
            ["tune", *target, f"--out={tuning}", replay, f"--seconds={seconds}"],
            ["compile", *target, f"--out={folders['tuned']}", replay, f"--tuning={tuning}"],
        ]
        for step in steps:
            failed, _ = run_passfit(step, scratch, LIMIT)
            if failed:
                return {"failed": f"{step[0]}: {failed}"}
        reports = {
            each: json.loads((folders[each] / "footprint.json").read_text(encoding="utf-8")) for each in VARIANTS
        }
        latency = timed(model, folders)
    if "failed" in latency:
        return latency
    return {"latency": latency, "ram": {each: reports[each]["best"]["ram"] for each in VARIANTS}, "seconds": seconds}


def table(rows: Mapping[Model, Mapping], head: Iterable[str]) -> str:
    """Return variants.md: ram and milliseconds of each variant, beside the default library and ONNX Runtime."""
    lines = [
        "# Variants of a library", "", *head, "",
        "Milliseconds a run, turn by turn in one process; the best turn's median counts. Default: the least ram, one thread.",
        "Whole: `--no-splits`. Two threads: `--threads 2`. Tuned: `passfit tune`, in the seconds given. ONNX Runtime has one",
        "thread.", "",
        "| model | variant | ram | ms | default ÷ variant | ÷ ONNX Runtime |",
        "| --- | --- | ---: | ---: | ---: | ---: |",
    ]  # fmt: skip
    faster: dict[str, list[float]] = {}
    for model, row in rows.items():
        if "failed" in row:
            lines.append(f"| {model.title} | failed: {' '.join(row['failed'].split())} | | | | |")
            continue
        ms = {variant: min(row["latency"][variant]) for variant in VARIANTS}
        for variant in VARIANTS:
            gain = ms["default"] / ms[variant]
            faster.setdefault(variant, []).append(gain)
            title = f"{variant}, {row['seconds']} s" if variant == "tuned" else variant
            lines.append(
                f"| {model.title} | {title} | {format_bytes(row['ram'][variant])} | {ms[variant]:.3f} | {gain:.2f} "
                f"| {ms[variant] / fastest(row['latency']):.2f} |"
            )
    for variant, gains in faster.items():
        lines.append(f"| **geometric mean** ({len(gains)}) | {variant} | | | **{geometric_mean(gains):.2f}** | |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", action="append", help=f"instead of {', '.join(MODELS)}; repeatable")
    parser.add_argument("--seconds", type=int, default=SECONDS, help=f"to tune each model in (default: {SECONDS})")
    arguments = parser.parse_args()
    origin, folder = begin(f"variants-{arguments.seconds}")
    rows = {}
    for model in models():
        if model.name not in (arguments.model or MODELS):
            continue
        file = folder / f"{model.name}.json"
        if not file.exists():
            file.write_text(json.dumps(measure(model, arguments.seconds), indent=1) + "\n", encoding="utf-8")
        rows[model] = json.loads(file.read_text(encoding="utf-8"))
        print(f"{model.name}: {json.dumps(rows[model])}", flush=True)
    text = table(rows, origin.lines(f".venv/bin/python benchmarks/variants.py --seconds {arguments.seconds}"))
    publish("variants", text, whole=not arguments.model)


if __name__ == "__main__":
    main()
