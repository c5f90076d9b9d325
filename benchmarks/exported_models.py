"""Export networks by today's exporters, compile and compare each; write results/exported.md.

    .venv/bin/python benchmarks/exported_models.py --exporters PYTHON [--exporters PYTHON …]   every network of benchmarks/exported
    .venv/bin/python benchmarks/exported_models.py --files FOLDER --only whisper               of files written before; nothing is published

PYTHON has torch with torchvision, tensorflow with tf2onnx, skl2onnx, or paddle with paddle2onnx; each writes the networks it can.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from head import HERE, begin, publish
from tables import plain

from passfit import api
from passfit.errors import ModelError
from passfit.frontend.canonicalise import import_model
from passfit.frontend.source.import_options import ImportOptions
from passfit.runtime import InferenceSession
from passfit.search.settings import SearchSettings
from passfit.support.sizes import format_bytes
from passfit.targets.catalogue import get_target
from passfit.verify.inputs import make_input

TARGETS = ("x86-64", "rpi4")
#: networks that are planned, too: one for each kind
_PLANNED = (
    "spectrogram", "whisper-decoder-cached", "lstm-ctc", "crnn", "yolo-nms", "detr", "gat", "mamba-unrolled", "conformer", "swin", "llama-cached",
    "gradient-boosting",
)  # fmt: skip
_SEARCH = SearchSettings(evaluations=1, workers=1)
#: drawn inputs that a library is compared on, besides its own verification's
_CASES, _SEED = 5, 53
#: share of an output's range within which a library is right; numbers of 8 bits are rounded a few times
_CLOSE, _CLOSE_QUANTISED = 1e-3, 0.05
#: runs cases; returns the outputs of each, in the order of the file
Run = Callable[[Sequence[Mapping[str, np.ndarray]]], Sequence[Sequence[np.ndarray]]]
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


def close_inputs(model: onnx.ModelProto) -> dict[str, list[int]]:
    """Set each open size of the inputs to 1; return the shapes of these inputs."""
    shapes = {}
    for value in model.graph.input:
        sizes = value.type.tensor_type.shape.dim
        if any(not size.HasField("dim_value") for size in sizes):
            for size in sizes:
                size.dim_value = size.dim_value or 1
            shapes[value.name] = [size.dim_value for size in sizes]
    return shapes


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


def compare(file: Path, model: onnx.ModelProto, run: Run) -> float:
    """Return the largest difference of a library's outputs from ONNX Runtime's, on drawn inputs."""
    cases, worst = [make_input(model, _SEED, case) for case in range(_CASES)], 0.0
    results = run(cases)  # a refusal of ours comes first
    quiet = onnxruntime.SessionOptions()
    quiet.log_severity_level = 4
    session = onnxruntime.InferenceSession(file, quiet)
    for case, ours in zip(cases, results, strict=True):
        theirs = session.run(None, case)
        worst = max(worst, *(difference(np.asarray(one), np.asarray(other)) for one, other in zip(ours, theirs)))
    return worst


def measure(file: Path, target: str) -> dict:
    """Plan a network for a target; or, without one, compile it for this machine and compare it. Return its row."""
    model = onnx.load(file)
    shapes = close_inputs(model)
    row = {
        "model": file.stem,
        "target": target,
        "nodes": len(model.graph.node),
        "quantised": is_quantised(model),
        "reason": "",
    }
    with tempfile.TemporaryDirectory() as folder:
        closed = Path(folder) / "closed.onnx"
        onnx.save(model, closed)
        try:
            if target:
                report = api.optimize(file, get_target(target), out=Path(folder) / "out", search=_SEARCH, shapes=shapes)
                row |= {"ram": report.best.ram, "default": report.baseline.ram if report.baseline else None}
            else:
                import_model(closed, ImportOptions())  # a session freezes inputs that decide a shape
                session = InferenceSession(closed)
                row["error"] = compare(file, model, lambda cases: [session.run(None, case) for case in cases])
        except ModelError as error:
            row |= {"reason": str(error), "runs": runs(file)}
    return row


def runs(file: Path) -> bool:
    """Tell whether ONNX Runtime takes a file."""
    try:
        onnxruntime.InferenceSession(file)
    except Exception:  # its errors have no base of their own
        return False
    return True


def is_quantised(model: onnx.ModelProto) -> bool:
    return any(node.op_type == "QuantizeLinear" for node in model.graph.node)


def verdict(row: dict) -> str:
    if row["reason"]:
        return "refused"
    return "right" if row["error"] <= (_CLOSE_QUANTISED if row["quantised"] else _CLOSE) else "**DIFFERS**"


def page(rows: Sequence[dict], refused: dict[str, str], head: Sequence[str]) -> Iterator[str]:
    """Yield the lines of exported.md."""
    yield from ("# Networks as today's exporters write them", "", *head, "")
    yield f"Each file is compiled for this machine without a search, and compared with ONNX Runtime on {_CASES} drawn inputs: the largest error"
    yield "relative to the range of an output, or the share of classes and indices that differ. Ram: that of `passfit optimize --evaluations 1`,"
    yield "and ÷ that of tvm-default, for one network of each kind."
    counts = Counter(verdict(row) for row in rows if not row["target"])
    yield from (
        "",
        "| verdict | files |",
        "| --- | ---: |",
        *(f"| {said} | {count} |" for said, count in sorted(counts.items())),
    )
    titles = (
        "network",
        "exporter",
        "nodes",
        "verdict",
        "error",
        *(f"{target}{said}" for target in TARGETS for said in (" ram", " ÷ default")),
    )
    yield from ("", f"| {' | '.join(titles)} |", f"|{' --- |' * len(titles)}")
    by_file: dict[str, dict[str, dict]] = {}
    for row in rows:
        by_file.setdefault(row["model"], {})[row["target"]] = row
    for name, found in sorted(by_file.items(), key=lambda each: each[0].rsplit(".", 1)):
        worst = found[""]
        cells = [
            *name.rsplit(".", 1),
            str(worst["nodes"]),
            verdict(worst),
            f"{worst['error']:.1e}" if "error" in worst else "",
        ]
        for target in TARGETS:
            row = found.get(target, {})
            cells.append(format_bytes(row["ram"]) if "ram" in row else "")
            cells.append(f"{row['ram'] / row['default']:.3f}" if row.get("default") else "")
        yield f"| {' | '.join(cells)} |"
    yield from (
        "",
        "## Refused",
        "",
        "| network | exporter | ONNX Runtime runs it | reason |",
        "| --- | --- | --- | --- |",
    )
    for name, found in sorted(by_file.items()):
        if reason := next((row["reason"] for row in reversed(found.values()) if row["reason"]), ""):
            taken = "yes" if found[""].get("runs") else "no"
            yield f"| {' | '.join(name.rsplit('.', 1))} | {taken} | {plain(reason, _REASON)} |"
    yield from ("", "## Not exported", "", "| network | exporter | the exporter's reason |", "| --- | --- | --- |")
    for model, reason in sorted(refused.items()):
        yield f"| {' | '.join(model.rsplit('.', 1))} | {plain(reason, _REASON)} |"


def tasks(files: Sequence[Path]) -> list[tuple[Path, str]]:
    """List files and targets: each file for none, the first one of some networks for all."""
    first = {file.stem.rsplit(".", 1)[0]: file for file in sorted(files, reverse=True)}
    planned = [first[name] for name in _PLANNED if name in first]
    return [(file, "") for file in files] + [(file, target) for file in planned for target in TARGETS]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--exporters", action="append", default=[each for each in [os.environ.get("EXPORTERS")] if each]
    )
    parser.add_argument("--files", type=Path, help="folder of the ONNX files; default: one that goes")
    parser.add_argument("--only", default="")
    parser.add_argument("--processes", type=int, default=2)
    arguments = parser.parse_args()
    origin, raw = begin("exported")
    kept = raw / "rows.jsonl"
    known = [json.loads(line) for line in kept.read_text(encoding="utf-8").splitlines()] if kept.exists() else []
    with tempfile.TemporaryDirectory() as folder, kept.open("a", encoding="utf-8") as written:
        files = arguments.files or Path(folder)
        refused = export(arguments.exporters, files, arguments.only)
        wanted = tasks([each for each in sorted(files.glob("*.onnx")) if re.search(arguments.only, each.stem)])
        rows = [
            row for row in known if (row["model"], row["target"]) in {(file.stem, target) for file, target in wanted}
        ]
        done = {(row["model"], row["target"]) for row in rows}
        left = [task for task in wanted if (task[0].stem, task[1]) not in done]
        with ProcessPoolExecutor(arguments.processes) as pool:  # not a Pool, whose processes may have no children
            for row in pool.map(measure, *zip(*left)) if left else ():
                print(json.dumps(row), file=written, flush=True)
                rows.append(row)
    command = ".venv/bin/python benchmarks/exported_models.py --exporters PYTHON"
    text = "\n".join(page(rows, refused, origin.lines(command))) + "\n"
    publish("exported", text, whole=not arguments.only)


if __name__ == "__main__":
    main()
