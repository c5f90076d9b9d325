"""Bytes of code, and milliseconds or instructions, of libraries: those of another checkout beside this one's.

    git worktree add ../before COMMIT && make -C ../before setup
    .venv/bin/python benchmarks/code_size.py --before ../before                natively, side by side
    .venv/bin/python benchmarks/code_size.py --before ../before --target rpi4  instructions counted under the emulator

Each library is compiled by its checkout's own `passfit.api`, for SEQUENCE. `before` is the other checkout's; `size`,
`balanced` and `speed` are this one's. Natively a library is a program that takes turns with the others, ROUNDS times;
the least time of a run counts. Rows are kept by commit.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from head import begin
from models import HERE, Model, geometric_mean, models

from passfit import api
from passfit.codegen.library import Library
from passfit.errors import PassfitError
from passfit.passes.sequence.sequence import TVM_DEFAULT
from passfit.program import Buffer, Port, Program, Tensor
from passfit.support.text_files import write_text
from passfit.targets import Target, get_target
from passfit.verify.inputs import make_input
from passfit.verify.measure.instructions import instructions
from passfit.verify.runner import Linked, link

COLUMNS = ("before", "size", "balanced", "speed")
#: small and medium models: a minute each to compile four times
MODELS = (
    "ocr-cls", "mtcnn-onet", "mtcnn-rnet", "mtcnn-pnet", "wake-embedding", "wake-melspectrogram", "wake-alexa",
    "wake-marvin", "wake-timer", "wake-weather", "vad", "vad-16k-op15", "tinyocr-rec", "speech-dnsmos-p808",
)  # fmt: skip
#: one sequence for all columns and both checkouts
SEQUENCE = (*TVM_DEFAULT, "share", "order")
ROUNDS, SECONDS, REPEATS = 7, 0.3, 200
_CHILD = "--build"


def build(order: dict) -> None:
    """Compile one library, in the checkout this process belongs to."""
    target = get_target(order["target"])
    if order["opt"]:
        target = target.with_opt(order["opt"])
    api.compile_model(
        order["source"], target, out=Path(order["out"]), sequence=Path(order["sequence"]), name=order["name"],
        shapes=order["shapes"], fix=order["fix"],
    )  # fmt: skip


def measure(model: Model, target: Target, before: Path) -> dict:
    """By column: bytes of code, weights and ram, the error, and `cost`, in nanoseconds or instructions."""
    source = str(model.file())
    inputs = make_input(api.load(source, model.name, model.shapes, model.fix).onnx, 0, 0)
    found: dict = {}
    with tempfile.TemporaryDirectory(prefix="passfit-") as scratch:
        sequence = Path(scratch) / "sequence.json"
        write_text(sequence, json.dumps({"passes": SEQUENCE}) + "\n")
        programs: dict[str, Linked] = {}
        for column in COLUMNS:
            out, checkout = Path(scratch) / column, before if column == "before" else HERE.parent
            order = {
                "source": source, "target": target.name, "opt": None if column == "before" else column,
                "out": str(out), "sequence": str(sequence), "name": model.name, "shapes": model.shapes, "fix": model.fix,
            }  # fmt: skip
            command = [str(checkout / ".venv" / "bin" / "python"), __file__, _CHILD, json.dumps(order)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                raise RuntimeError(f"{column}: {done.stderr.strip().splitlines()[-1]}")
            report = json.loads((out / "footprint.json").read_text(encoding="utf-8"))
            best = report["best"]
            found[column] = {name: best[name] for name in ("code", "weights", "ram")}
            found[column] |= {"error": report["measured"]["max_rel_error"], "cost": []}
            programs[column] = _linked(out, target)
        for _ in range(ROUNDS if programs["before"].runner.native else 1):
            for column, program in programs.items():
                found[column]["cost"].append(_cost(program, inputs))
    for each in found.values():
        each["cost"] = min(each["cost"])
    return found


def _linked(out: Path, target: Target) -> Linked:
    """Link the library in a folder of results into a program that runs it."""
    ports = json.loads((out / "manifest.json").read_text(encoding="utf-8"))["io"]
    tensors = [*ports["inputs"], *ports["outputs"]]
    named = [Port(each["name"], number) for number, each in enumerate(tensors)]
    program = Program(
        ports["name"], (), tuple(Tensor(tuple(each["shape"]), each["dtype"], number) for number, each in enumerate(tensors)),
        tuple(Buffer(each["name"], 0) for each in tensors), (),
        tuple(named[: len(ports["inputs"])]), tuple(named[len(ports["inputs"]) :]),
    )  # fmt: skip
    library = Library(ports["name"], out / f"lib{ports['name']}.a", out / f"{ports['name']}.h", 0, 0)
    folder = out / "program"
    folder.mkdir()
    return link(library, program, target, folder)


def _cost(program: Linked, inputs: dict) -> int | None:
    if program.runner.native:
        return program.run([inputs], REPEATS, SECONDS)[0]["min_ns"]
    return instructions(program, inputs, sys.maxsize)


def table(results: Path, head: Iterable[str]) -> str:
    """Return the rows in `results` as Markdown: a table per target."""
    lines = [
        "# Bytes of code", "", *head, "",
        "Libraries of one sequence; × is to `before`'s. Time, natively, in turns, or instructions under an emulator.",
    ]  # fmt: skip
    for folder in sorted(path for path in results.iterdir() if path.is_dir()):
        later = COLUMNS[1:]
        heads = (
            [f"code, {column}" for column in COLUMNS]
            + [f"× {column}" for column in later]
            + [f"time × {column}" for column in later]
        )
        lines += ["", f"## {folder.name}", "", f"| model | {' | '.join(heads)} |", "| --- |" + " ---: |" * len(heads)]
        ratios: dict[str, list[float]] = {}
        for model in MODELS:
            file = folder / f"{model}.json"
            if not file.exists():
                continue
            found = json.loads(file.read_text(encoding="utf-8"))
            if "failed" in found:
                lines.append(f"| {model} | {found['failed']} |" + " |" * (len(heads) - 1))
                continue
            cells = [f"{found[column]['code']:,}" for column in COLUMNS]
            for what in ("code", "cost"):
                for column in later:
                    ratio = found[column][what] / found["before"][what]
                    ratios.setdefault(f"{what} {column}", []).append(ratio)
                    cells.append(f"{ratio:.3f}")
            lines.append(f"| {model} | {' | '.join(cells)} |")
        if ratios:
            means = [f"**{geometric_mean(each):.3f}**" for each in ratios.values()]
            count = len(next(iter(ratios.values())))
            lines.append(f"| geometric mean ({count}) |" + " |" * len(COLUMNS) + f" {' | '.join(means)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    if sys.argv[1:2] == [_CHILD]:
        build(json.loads(sys.argv[2]))
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--before", type=Path, required=True, help="the checkout to compare with, with its .venv")
    parser.add_argument("--target", default="x86-64", help="device; default: x86-64")
    parser.add_argument("--model", action="append", choices=MODELS, help="only this one; repeatable")
    arguments = parser.parse_args()
    target, known = get_target(arguments.target), {model.name: model for model in models()}
    origin, results = begin("code_size")
    (results / target.name).mkdir(exist_ok=True)
    for name in arguments.model or MODELS:
        file = results / target.name / f"{name}.json"
        if file.exists():
            continue
        try:
            row = measure(known[name], target, arguments.before.resolve())
        except (PassfitError, RuntimeError) as error:
            row = {"failed": f"{type(error).__name__}: {error}"}
        write_text(file, json.dumps(row, indent=1) + "\n")
        sys.stdout.write(f"{name}: {json.dumps(row)}\n")
        sys.stdout.flush()
        text = table(results, origin.lines(".venv/bin/python benchmarks/code_size.py --before CHECKOUT"))
        write_text(HERE / "results" / "code_size.md", text)


if __name__ == "__main__":
    main()
