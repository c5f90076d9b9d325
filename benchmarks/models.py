"""Every model of models.toml on every target: imported, compiled, executed, compared, measured.

    .venv/bin/python benchmarks/models.py                        all of it; results in benchmarks/results/
    .venv/bin/python benchmarks/models.py --model ocr-cls --target x86-64

Results are kept per model and target, so an interrupted run goes on where it stopped; --again starts over.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
import time
from pathlib import Path

import tomli

from passfit import api
from passfit.errors import PassfitError
from passfit.support.sizes import format_bytes
from passfit.support.text_files import write_text
from passfit.targets import get_target

HERE = Path(__file__).parent
TARGETS = ("x86-64", "rpi4", "beaglebone", "visionfive2")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", action="append", help="only this one; repeatable")
    parser.add_argument("--target", action="append", choices=TARGETS, help="only this one; repeatable")
    parser.add_argument("--again", action="store_true", help="forget earlier results")
    arguments = parser.parse_args()
    models = tomli.loads((HERE / "models.toml").read_text(encoding="utf-8"))["model"]
    results = HERE / "results" / "models"
    results.mkdir(parents=True, exist_ok=True)
    for target in arguments.target or TARGETS:
        for model in models:
            file = results / f"{model['name']}@{target}.json"
            if (arguments.model and model["name"] not in arguments.model) or (file.exists() and not arguments.again):
                continue
            result = run(model, target)
            write_text(file, json.dumps(result, indent=1) + "\n")
            sys.stdout.write(f"{model['name']} @ {target}: {result.get('refused') or summary(result)}\n")
            sys.stdout.flush()
    write_text(HERE / "results" / "models.md", table(models, results))


def run(model: dict, target: str) -> dict:
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as out:
        try:
            report = api.compile_model(
                model["source"], get_target(target), out=Path(out), name=model["name"],
                shapes=model.get("shapes"), fix=model.get("fix"),
            )  # fmt: skip
        except PassfitError as error:
            return {"refused": str(error), "seconds": round(time.monotonic() - started, 1)}
        passes = json.loads((Path(out) / "sequence.json").read_text())["passes"]
    return report.to_json() | {"passes": passes, "seconds": round(time.monotonic() - started, 1)}


def summary(result: dict) -> str:
    best, baseline, measured = result["best"], result["baseline"], result["measured"]
    error = "not run" if measured["max_rel_error"] is None else f"{measured['max_rel_error']:.1e}"
    return f"ram {best['ram'] / baseline['ram']:.3f} of tvm-default, error {error}, {result['seconds']} s"


def table(models: list[dict], results: Path) -> str:
    """Markdown: one row a model, natively; below it the largest error on each emulated target."""
    rows, ratios, emulated = [], [], {target: {} for target in TARGETS[1:]}
    for model in models:
        found = {
            target: json.loads(file.read_text())
            for target in TARGETS
            if (file := results / f"{model['name']}@{target}.json").exists()
        }
        native = found.get(TARGETS[0])
        if native is None:
            continue
        if "refused" in native:
            rows.append(f"| {model['name']} | no: {native['refused']} | | | | | | | |")
            continue
        best, baseline, measured = native["best"], native["baseline"], native["measured"]
        ratio = best["ram"] / baseline["ram"]
        if not model["recurrent"]:
            ratios.append(ratio)
        rows.append(
            f"| {model['name']}{' (recurrent)' if model['recurrent'] else ''} | yes | {measured['max_rel_error']:.1e} "
            f"| {format_bytes(best['ram'])} | {format_bytes(baseline['ram'])} | {ratio:.3f} "
            f"| {format_bytes(measured['ram'])} | {measured['latency_ms']:.1f} | {native['seconds']} |"
        )
        for target, result in found.items():
            if target in emulated and "measured" in result:
                emulated[target][model["name"]] = result["measured"]["max_rel_error"]
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else float("nan")
    lines = [
        "# Every model of models.toml on x86-64, executed natively",
        "",
        "`.venv/bin/python benchmarks/models.py`; error: largest, relative to the range of the output of ONNX Runtime;",
        "ram: predicted = arena + workspace; measured: anonymous memory gained over an empty process; seconds: import,",
        "search, compile, run, compare.",
        "",
        "| model | compiled | error | ram | tvm-default | ratio | measured | ms | seconds |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
        *rows,
        "",
        f"Geometric mean of ram ÷ tvm-default over the {len(ratios)} models without recurrent nodes: **{mean:.3f}**",
        f"(worst {max(ratios, default=0):.3f}).",
        "",
        "## Emulated targets",
        "",
        "Each as old as its file in `results/models/`, which `git log` tells: emulation takes minutes a model.",
        "",
        "| target | models executed | largest error | where |",
        "| --- | --- | --- | --- |",
    ]
    for target, errors in emulated.items():
        if errors:
            worst = max(errors, key=lambda name: errors[name] or 0)
            lines.append(f"| {target} | {len(errors)} | {errors[worst]:.1e} | {worst} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
