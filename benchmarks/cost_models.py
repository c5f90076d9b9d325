"""Models of cost against measurement: cycles of kernels beside their time, natively; estimates of code beside builds.

    .venv/bin/python benchmarks/cost_models.py                    six small models
    .venv/bin/python benchmarks/cost_models.py --model vad

The kernels of SEQUENCE are timed one by one with warm caches; the rank correlation is Spearman's. Code is that of whole
libraries, for x86-64 and rpi4.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import tvm
from head import begin
from models import HERE, Model, models, spearman

from passfit import api
from passfit.codegen.build_library import build_library
from passfit.codegen.objects import build_module
from passfit.kernels.lower.lower import Lowered
from passfit.memory.validation.checked_plan import checked_plan
from passfit.passes.sequence.replay import replay
from passfit.passes.sequence.sequence import TVM_DEFAULT, Sequence
from passfit.search.evaluate.code_estimate import CodeEstimate
from passfit.support.text_files import json_lines, write_text
from passfit.targets import Target, get_target
from passfit.tir.counts.operation_counts import predicted_cycles

MODELS = ("mtcnn-rnet", "mtcnn-onet", "wake-alexa", "wake-embedding", "vad", "ocr-cls")
SEQUENCE = (*TVM_DEFAULT, "share", "order")
TARGETS = ("x86-64", "rpi4")
#: calls in a measurement, and measurements, of which the shortest counts
_NUMBER, _REPEAT = 10, 10


def measure(model: Model) -> dict:
    """Return nanoseconds and cycles by kernel, and bytes of code, estimated and built, by target."""
    imported = api.load(str(model.file()), model.name, model.shapes, model.fix)
    found: dict = {"code": {}}
    for name in TARGETS:
        target = get_target(name)
        lowered, workspace = replay(Sequence.parse(SEQUENCE), imported.graph, imported.onnx, model.name, target.machine)
        with tempfile.TemporaryDirectory(prefix="passfit-") as folder:
            plan = checked_plan(lowered.program, target)
            built = build_library(model.name, lowered, plan, workspace, target, Path(folder)).code_bytes
        found["code"][name] = {"estimated": CodeEstimate(target).of(lowered), "built": built}
        if name == TARGETS[0]:
            found["kernels"] = _timed(lowered, target)
    return found


def _timed(lowered: Lowered, target: Target) -> list[list[float]]:
    module = build_module(lowered.kernels, target.llvm_config())
    rows = []
    for name, kernel in lowered.kernels.items():
        generator = np.random.default_rng(0)
        arrays = [
            generator.random([int(extent) for extent in param.ty.shape]).astype(str(param.ty.dtype))
            for param in kernel.params
        ]
        timer = module.time_evaluator(name, tvm.cpu(), number=_NUMBER, repeat=_REPEAT)
        seconds = min(timer(*map(tvm.runtime.tensor, arrays)).results)
        rows.append([seconds * 1e9, predicted_cycles(kernel, target)])
    return rows


def table(results: Path, head: Iterable[str]) -> str:
    """Return the rows in `results` as Markdown."""
    heads = [
        "kernels",
        "Spearman",
        *(f"code, {name}: {what}" for name in TARGETS for what in ("built", "estimated ÷ built")),
    ]
    lines = [
        "# Models of cost", "", *head, "",
        "Rank correlation of cycles and time, kernel by kernel; bytes of code of whole libraries.", "",
        f"| model | {' | '.join(heads)} |", "| --- |" + " ---: |" * len(heads),
    ]  # fmt: skip
    everything: list[list[float]] = []
    for model in MODELS:
        file = results / f"{model}.json"
        if not file.exists():
            continue
        found = json.loads(file.read_text(encoding="utf-8"))
        everything += found["kernels"]
        cells = [str(len(found["kernels"])), f"{spearman(found['kernels']):.3f}"]
        for code in found["code"].values():
            cells += [f"{code['built']:,}", f"{code['estimated'] / code['built']:.3f}"]
        lines.append(f"| {model} | {' | '.join(cells)} |")
    if everything:
        lines.append(f"| all kernels | {len(everything)} | **{spearman(everything):.3f}** |" + " |" * (len(heads) - 2))
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", action="append", choices=MODELS, help="only this one; repeatable")
    arguments = parser.parse_args()
    known = {model.name: model for model in models()}
    origin, results = begin("cost_models")
    for name in arguments.model or MODELS:
        file = results / f"{name}.json"
        if not file.exists():
            write_text(file, json_lines(measure(known[name])))
            sys.stdout.write(f"{name}\n")
            sys.stdout.flush()
        write_text(
            HERE / "results" / "cost_models.md",
            table(results, origin.lines(".venv/bin/python benchmarks/cost_models.py")),
        )


if __name__ == "__main__":
    main()
