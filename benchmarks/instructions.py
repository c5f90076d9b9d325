"""Instructions executed by a run, under emulation: passfit's kernels beside the same ones as TVM leaves them.

    .venv/bin/python benchmarks/instructions.py                       results in benchmarks/results/instructions.md
    .venv/bin/python benchmarks/instructions.py --model mtcnn-rnet --target rpi4

Both libraries are of the graph after tvm-default's passes; their outputs are compared with ONNX Runtime's.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

from entries import HERE, Entry, alone, entries, geometric_mean
from latency import lower

from passfit import api
from passfit.codegen import c_identifier, symbol, write_library
from passfit.codegen.build_library import build_library
from passfit.codegen.library import Library
from passfit.codegen.objects import build_object
from passfit.frontend.imported_model import port_names
from passfit.kernels.lower.lower import Lowered
from passfit.kernels.lower.specialise import specialise_kernels
from passfit.memory.validation.checked_plan import checked_plan
from passfit.passes.sequence.sequence import TVM_DEFAULT
from passfit.search.evaluate.scoring import Scorer
from passfit.support.text_files import write_text
from passfit.targets import Target, get_target
from passfit.tir.workspace import workspace_bytes
from passfit.verify.cases import choose_cases
from passfit.verify.compare import compare
from passfit.verify.instructions import instructions
from passfit.verify.runner import link

TARGETS = ("rpi4", "beaglebone", "visionfive2", "bpi-f3")
#: small enough for an emulator that notes every block: minutes each
MODELS = (
    "mtcnn-rnet", "mtcnn-onet", "ocr-cls", "wake-alexa", "wake-marvin", "wake-timer", "wake-embedding", "vad",
)  # fmt: skip
RESULTS = HERE / "results" / "instructions"
TOLERANCE = 1e-4


def untuned(imported: api.ImportedModel, target: Target, folder: Path) -> tuple[Library, Lowered]:
    """The library of the kernels as TVM leaves them but for calls and exponentials, with their workspaces."""
    scorer = Scorer(imported.graph, imported.name, target, *port_names(imported.onnx))
    lowered = specialise_kernels(scorer.lowered(TVM_DEFAULT))
    prefix = c_identifier(imported.name)
    kernels = {symbol(prefix, name): kernel for name, kernel in lowered.kernels.items()}
    build_object(kernels, target, folder / "kernels.o")
    workspace = sum(map(workspace_bytes, lowered.kernels.values()))
    plan = checked_plan(lowered.program, target)
    library = write_library(
        imported.name, lowered.program, plan, workspace, lowered.weights, [folder / "kernels.o"], target, folder
    )
    return library, lowered


def tuned(imported: api.ImportedModel, target: Target, folder: Path) -> tuple[Library, Lowered]:
    lowered, workspace = lower(imported, (*TVM_DEFAULT, "share", "order"), target)
    plan = checked_plan(lowered.program, target)
    return build_library(imported.name, lowered, plan, workspace, target, folder), lowered


def measure(entry: Entry, name: str) -> dict:
    """Instructions a run of each library, and its error."""
    imported, target = entry.load(entry.fetched()), get_target(name)
    cases = choose_cases(imported.onnx, 0, 1, TOLERANCE)
    found: dict = {}
    for kind, build in (("untuned", untuned), ("tuned", tuned)):
        with tempfile.TemporaryDirectory(prefix="passfit-") as scratch:
            library, lowered = build(imported, target, Path(scratch))
            linked = link(library, lowered.program, target, Path(scratch))
            _, outputs = linked.run([case.inputs for case in cases])
            error = compare(outputs, cases, TOLERANCE).relative
            found[kind] = {"instructions": instructions(linked, cases[0].inputs, sys.maxsize), "error": error}
    return found


def fill(entry: Entry, target: str, file: Path) -> None:
    write_text(file, json.dumps(measure(entry, target), indent=1) + "\n")


def table() -> str:
    lines = [
        "# Instructions a run, under emulation",
        "",
        "`.venv/bin/python benchmarks/instructions.py`: counted by what qemu executes; kernels of tvm-default as TVM leaves",
        "them, and by passfit's rules; outputs of both agree with ONNX Runtime's (error: the larger one, of their range).",
        "",
        "| model | target | untuned | by rules | untuned ÷ rules | error |",
        "| --- | --- |" + " ---: |" * 4,
    ]
    ratios: dict[str, list[float]] = {}
    for model in MODELS:
        for target in TARGETS:
            file = RESULTS / f"{model}-{target}.json"
            if not file.exists():
                continue
            found = json.loads(file.read_text(encoding="utf-8"))
            if "failed" in found:
                lines.append(f"| {model} | {target} | {found['failed']} | | | |")
                continue
            one, other = (found[kind]["instructions"] for kind in ("untuned", "tuned"))
            error = max(found[kind]["error"] for kind in ("untuned", "tuned"))
            ratios.setdefault(target, []).append(one / other)
            lines.append(f"| {model} | {target} | {one} | {other} | {one / other:.1f}× | {error:.1e} |")
    for target, values in ratios.items():
        lines.append(f"| **geometric mean** ({len(values)}) | {target} | | | **{geometric_mean(values):.1f}×** | |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", action="append", choices=MODELS, help="only this one; repeatable")
    parser.add_argument("--target", action="append", choices=TARGETS, help="only this one; repeatable")
    parser.add_argument("--again", action="store_true", help="forget earlier results")
    arguments = parser.parse_args()
    RESULTS.mkdir(parents=True, exist_ok=True)
    known = {entry.name: entry for entry in entries()}
    for model in arguments.model or MODELS:
        for target in arguments.target or TARGETS:
            file = RESULTS / f"{model}-{target}.json"
            if file.exists() and not arguments.again:
                continue
            if wrong := alone(fill, known[model], target, file):
                write_text(file, json.dumps({"failed": wrong}) + "\n")
            sys.stdout.write(f"{model} on {target}: {file.read_text(encoding='utf-8')}")
            sys.stdout.flush()
            write_text(HERE / "results" / "instructions.md", table())


if __name__ == "__main__":
    main()
