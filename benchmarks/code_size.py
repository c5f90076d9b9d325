"""Bytes of code, and milliseconds or instructions, of libraries: those of another checkout beside this one's.

    git worktree add ../before COMMIT && make -C ../before setup
    .venv/bin/python benchmarks/code_size.py --before ../before                natively, side by side
    .venv/bin/python benchmarks/code_size.py --before ../before --target rpi4  instructions counted under the emulator

Each library is compiled by its checkout's own `passfit.api`, for the same sequence: what the memory benchmark found,
else that of tvm-default. `before` is the other checkout's; `size`, `balanced` and `speed` are this one's. Natively a
library is a program that takes turns with the others, ROUNDS times; the least time of a run counts. Results are kept per
model in benchmarks/results/code_size/; --again forgets them.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from entries import HERE, Entry, attempted, entries, geometric_mean
from memory_table import known_of

from passfit import api
from passfit.codegen.library import Library
from passfit.passes.sequence.sequence import TVM_DEFAULT
from passfit.program import Buffer, Port, Program, Tensor
from passfit.support.text_files import write_text
from passfit.targets import Target, get_target
from passfit.verify.inputs import make_input
from passfit.verify.instructions import instructions
from passfit.verify.runner import Linked, link

COLUMNS = ("before", "size", "balanced", "speed")
#: small and medium models: a minute each to compile four times
MODELS = (
    "ocr-cls", "mtcnn-onet", "mtcnn-rnet", "mtcnn-pnet", "wake-embedding", "wake-melspectrogram", "wake-alexa",
    "wake-marvin", "wake-timer", "wake-weather", "vad", "vad-16k-op15", "tinyocr-rec", "speech-dnsmos-p808",
)  # fmt: skip
RESULTS = HERE / "results" / "code_size"
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


def measure(entry: Entry, target: Target, before: Path) -> dict:
    """By column: bytes of code, weights and ram, the error, and `cost`, in nanoseconds or instructions."""
    source = entry.fetched()
    specs = known_of(entry).get("everything", {}).get("passes") or [*TVM_DEFAULT, "share", "order"]
    inputs = make_input(entry.load(source).onnx, 0, 0)
    found: dict = {}
    with tempfile.TemporaryDirectory(prefix="passfit-") as scratch:
        sequence = Path(scratch) / "sequence.json"
        write_text(sequence, json.dumps({"passes": specs}) + "\n")
        programs: dict[str, Linked] = {}
        for column in COLUMNS:
            out, checkout = Path(scratch) / column, before if column == "before" else HERE.parent
            order = {
                "source": source, "target": target.name, "opt": None if column == "before" else column,
                "out": str(out), "sequence": str(sequence), "name": entry.name, "shapes": entry.shapes, "fix": entry.fix,
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


def table() -> str:
    """Return the results as Markdown: a table per target."""
    lines = [
        "# Bytes of code", "",
        "`.venv/bin/python benchmarks/code_size.py --before CHECKOUT`: libraries of one sequence; × is to `before`'s. Time,",
        "natively, in turns, or instructions under an emulator.",
    ]  # fmt: skip
    for folder in sorted(path for path in RESULTS.iterdir() if path.is_dir()):
        later = COLUMNS[1:]
        heads = [f"code, {column}" for column in COLUMNS] + [f"× {column}" for column in later] + [f"time × {column}" for column in later]
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
    parser.add_argument("--again", action="store_true", help="forget earlier results")
    arguments = parser.parse_args()
    target, known = get_target(arguments.target), {entry.name: entry for entry in entries()}
    for model in arguments.model or MODELS:
        file = RESULTS / target.name / f"{model}.json"
        if file.exists() and not arguments.again:
            continue
        file.parent.mkdir(parents=True, exist_ok=True)
        result = attempted(lambda model=model: measure(known[model], target, arguments.before.resolve()))
        write_text(file, json.dumps(result, indent=1) + "\n")
        sys.stdout.write(f"{model}: {file.read_text(encoding='utf-8')}")
        sys.stdout.flush()
        write_text(HERE / "results" / "code_size.md", table())


if __name__ == "__main__":
    main()
