"""Export networks by today's exporters, compile and compare each; write results/exported.md.

    .venv/bin/python benchmarks/exported_models.py --exporters PYTHON [--exporters PYTHON …]   every network of benchmarks/exported
    .venv/bin/python benchmarks/exported_models.py --files FOLDER --only whisper               files written before; nothing is published

PYTHON has torch with torchvision, tensorflow with tf2onnx, skl2onnx, or paddle with paddle2onnx; each writes the networks it can.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from head import HERE, begin, publish
from tables import plain

import passfit
from passfit.errors import PassfitError
from passfit.support.sizes import format_bytes
from passfit.verify.inputs import make_input

TARGETS = ("x86-64", "rpi4")
#: seconds for the compilation of a network
_SECONDS = 300
#: drawn inputs that a library is compared on, besides its own verification's
_CASES, _SEED = 5, 53
#: share of an output's range within which a library is right; numbers of 8 bits are rounded a few times
_CLOSE, _CLOSE_QUANTISED = 1e-3, 0.05
#: characters of a reason in the table
_REASON = 300


def export(exporters: Sequence[str], folder: Path, only: str) -> dict[str, str]:
    """Write the networks to `folder`; return the reason of each that its exporter refuses."""
    refused = {}
    for python in exporters:
        command = [python, "-W", "ignore", "-m", "exported", "--out", str(folder), "--only", only]
        done = subprocess.run(command, cwd=HERE, stdout=subprocess.PIPE, text=True, check=True)
        rows = (json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"model"'))
        refused |= {row["model"]: row["reason"] for row in rows if row["reason"]}
    return refused


def close_inputs(model: onnx.ModelProto) -> list[str]:
    """Set each open size of the inputs to 1; return the options that tell passfit so."""
    options = []
    for value in model.graph.input:
        sizes = value.type.tensor_type.shape.dim
        if any(not size.HasField("dim_value") for size in sizes):
            for size in sizes:
                size.dim_value = size.dim_value or 1
            options.append(f"--shape={value.name}={'x'.join(str(size.dim_value) for size in sizes)}")
    return options


def passfit_compile(file: Path, target: str, options: Sequence[str], out: Path) -> str:
    """Compile a network; return the message of a refusal or fault with its exit code, or nothing."""
    command = [
        sys.executable,
        "-m",
        "passfit.cli",
        "compile",
        str(file),
        f"--target={target}",
        "--evaluations=1",
        *options,
    ]
    try:
        done = subprocess.run([*command, f"--out={out}"], capture_output=True, text=True, timeout=_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return f"not compiled within {_SECONDS} s"
    said = " ".join(done.stderr.split())
    return "" if done.returncode in (0, 1) else f"exit {done.returncode}: {said[-4 * _REASON :]}"


def difference(ours: np.ndarray, theirs: np.ndarray) -> float:
    """Return the largest error relative to the range of the reference; for classes and indices, the share that differ."""
    if theirs.dtype == object:  # a dictionary for each row, by class
        theirs = np.array([list(row.values()) for row in theirs])
    if ours.shape != theirs.shape:
        return float("inf")
    if (theirs.dtype.kind != "f" and theirs.dtype.itemsize > 1) or theirs.dtype.kind == "b":
        return float(np.mean(ours != theirs)) if theirs.size else 0.0
    theirs64 = theirs.astype(np.float64)
    finite = np.isfinite(theirs64)
    if not np.array_equal(theirs64[~finite], ours.astype(np.float64)[~finite], equal_nan=True):
        return float("inf")
    apart = np.abs(ours.astype(np.float64) - theirs64)[finite]
    span = 255.0 if theirs.dtype.itemsize == 1 else np.ptp(theirs64[finite]) if apart.size else 1.0
    return float(apart.max() / (span or 1.0)) if apart.size else 0.0


def compare(file: Path, model: onnx.ModelProto, folder: Path) -> dict[str, float]:
    """Return by output the largest difference from ONNX Runtime on drawn inputs."""
    quiet = onnxruntime.SessionOptions()
    quiet.log_severity_level = 4
    session = onnxruntime.InferenceSession(file, quiet)
    cases = [make_input(model, _SEED, case) for case in range(_CASES)]
    library = passfit.load(folder)
    worst: Counter[str] = Counter()
    for case, ours in zip(cases, library.run_all(cases), strict=True):
        for value, theirs in zip(session.get_outputs(), session.run(None, case), strict=True):
            if value.name in ours:
                worst[value.name] = max(worst[value.name], difference(ours[value.name], np.asarray(theirs)))
    return dict(worst)


def measure(file: Path, target: str) -> dict:
    """Compile a network and compare it; return its row."""
    model = onnx.load(file)
    options = close_inputs(model)
    quantised = any(node.op_type == "QuantizeLinear" for node in model.graph.node)
    row = {
        "model": file.stem, "target": target, "nodes": len(model.graph.node),
        "close": _CLOSE_QUANTISED if quantised else _CLOSE,
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        out, started = Path(folder) / "out", time.monotonic()
        reason = passfit_compile(file, target, options, out)
        row |= {"seconds": round(time.monotonic() - started, 1), "reason": reason}
        if not reason:
            footprint = json.loads((out / "footprint.json").read_text(encoding="utf-8"))
            row |= {"ram": footprint["best"]["ram"], "default": (footprint["baseline"] or {}).get("ram")}
            try:
                row["errors"] = compare(file, model, out)
            except (PassfitError, RuntimeError) as error:
                row["reason"] = f"not compared: {error}"
    return row


def verdict(row: dict) -> str:
    if row["reason"]:
        return "refused" if row["reason"].startswith("exit 2") else "**FAULT**"
    return "right" if all(error <= row["close"] for error in row["errors"].values()) else "**DIFFERS**"


def page(rows: Sequence[dict], refused: dict[str, str], head: Sequence[str]) -> Iterator[str]:
    """Yield the lines of exported.md."""
    yield from ("# Networks as today's exporters write them", "", *head, "")
    counts = Counter((row["target"], verdict(row)) for row in rows)
    yield f"Compiled with one evaluation, compared with ONNX Runtime on {_CASES} drawn inputs: the largest error relative to the range of an"
    yield "output, or the share of integers that differ. Ram: planned; ÷ that of tvm-default."
    yield from ("", "| target | verdict | networks |", "| --- | --- | ---: |")
    yield from (f"| {target} | {said} | {count} |" for (target, said), count in sorted(counts.items()))
    titles = ("network", "exporter", "nodes", "target", "verdict", "ram", "÷ tvm-default", "error", "reason")
    yield from ("", f"| {' | '.join(titles)} |", f"|{' --- |' * len(titles)}")
    for row in rows:
        name, exporter = row["model"].rsplit(".", 1)
        error = max(row.get("errors", {}).values(), default=None)
        cells = (
            name, exporter, row["nodes"], row["target"], verdict(row), format_bytes(row["ram"]) if "ram" in row else "",
            f"{row['ram'] / row['default']:.3f}" if row.get("default") else "", "" if error is None else f"{error:.1e}",
            plain(row["reason"], _REASON),
        )  # fmt: skip
        yield f"| {' | '.join(map(str, cells))} |"
    yield from ("", "## Not exported", "", "| network | exporter | the exporter's reason |", "| --- | --- | --- |")
    for model, reason in sorted(refused.items()):
        yield f"| {' | '.join(model.rsplit('.', 1))} | {plain(reason, _REASON)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--exporters", action="append", default=[each for each in [os.environ.get("EXPORTERS")] if each]
    )
    parser.add_argument("--files", type=Path, help="folder of the ONNX files; default: one that goes")
    parser.add_argument("--only", default="")
    parser.add_argument("--target", action="append", choices=TARGETS)
    parser.add_argument("--processes", type=int, default=2)
    arguments = parser.parse_args()
    origin, _ = begin("exported")
    with tempfile.TemporaryDirectory() as folder:
        files = arguments.files or Path(folder)
        refused = export(arguments.exporters, files, arguments.only)
        rows = []
        for target in arguments.target or TARGETS:
            chosen = sorted(each for each in files.glob("*.onnx") if re.search(arguments.only, each.stem))
            with ThreadPoolExecutor(arguments.processes) as pool:
                for row in pool.map(partial(measure, target=target), chosen):
                    print(json.dumps(row), flush=True)
                    rows.append(row)
    rows.sort(key=lambda row: (row["model"].rsplit(".", 1), row["target"]))
    command = ".venv/bin/python benchmarks/exported_models.py --exporters PYTHON"
    text = "\n".join(page(rows, refused, origin.lines(command))) + "\n"
    publish("exported", text, whole=not (arguments.only or arguments.target or arguments.files))


if __name__ == "__main__":
    main()
