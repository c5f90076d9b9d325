"""Time single operators beside ONNX Runtime and the roofline of one core; write results/kernel_grid.md.

    .venv/bin/python benchmarks/kernel_grid.py                      all cases, in some minutes
    .venv/bin/python benchmarks/kernel_grid.py --only transposed    cases whose title holds the pattern; printed only
    .venv/bin/python benchmarks/kernel_grid.py --target NAME        built for another target that runs here
    .venv/bin/python benchmarks/kernel_grid.py --before PATH        beside the libraries of another checkout with its own .venv

Each operator of grid_cases.py is a model of its own, compiled with one sequence, without a search, and compared with
ONNX Runtime's outputs; then both run turn by turn in one process, one thread each. Rows are kept by commit.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from math import prod
from pathlib import Path

import numpy as np
import onnxruntime
import timing
from grid_cases import Case, cases
from grid_libraries import build, slug
from head import HERE, begin
from main_tables import widest
from models import geometric_mean

from passfit.errors import PassfitError
from passfit.support.text_files import write_text
from passfit.targets import Target, get_target
from passfit.tuning.measure.peak import Peak, measure_peak

#: seconds of a turn of each runtime
SECONDS = 0.06
#: float operations from which half of the roofline is asked for
LARGE = 1_000_000
#: allowed error, relative to the range of an output
TOLERANCE = 1e-3


def measure(case: Case, target: Target, peak: Peak, before: Path) -> dict:
    """Return the row of a case: milliseconds of all, bytes of code, error, and the roofline in milliseconds.

    `before` is another library of it, which may not exist.
    """
    session, expected = _session(case.model().SerializeToString(), case)
    with tempfile.TemporaryDirectory(prefix="passfit-") as name:
        code, workspace = build(case, target, Path(name))
        ours, output = _library(Path(name) / "libgrid.so", case, expected)
    ours()
    error = float(np.abs(output - expected).max() / max(np.ptp(expected), 1e-12))
    runs = {"ms": ours, "onnxruntime": session}
    if before.exists():
        runs["before"], _ = _library(before, case, expected)
    turns = timing.turn_by_turn(runs, SECONDS)
    moved = 4 * sum(map(prod, (*case.inputs, *case.weights, expected.shape)))
    return {
        **{name: min(times) for name, times in turns.items()}, "code": code,
        "workspace": workspace, "error": error, "roofline": peak.seconds(case.flops, moved) * 1e3, "flops": case.flops,
    }  # fmt: skip


def _inputs(case: Case) -> list[np.ndarray]:
    return [timing.made(f"x{number}", shape, "float32") for number, shape in enumerate(case.inputs)]


def _library(file: Path, case: Case, expected: np.ndarray) -> tuple[Callable[[], object], np.ndarray]:
    """Load a library and fill its inputs; return its run, and its output, of the form of `expected`, in place."""
    library = ctypes.CDLL(str(file))
    library.grid_input.restype = library.grid_output.restype = ctypes.c_void_p
    for number, value in enumerate(_inputs(case)):
        ctypes.memmove(library.grid_input(number), value.ctypes.data, value.nbytes)
    memory = (ctypes.c_byte * expected.nbytes).from_address(library.grid_output(0))
    return library.grid_run, np.frombuffer(memory, expected.dtype).reshape(expected.shape)


def _session(model: bytes, case: Case) -> tuple[Callable[[], object], np.ndarray]:
    """Return ONNX Runtime's run with bound inputs and outputs, and its output."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    for number, value in enumerate(_inputs(case)):
        binding.bind_cpu_input(f"x{number}", value)
    binding.bind_output("y")
    session.run_with_iobinding(binding)
    return (lambda: session.run_with_iobinding(binding)), binding.copy_outputs_to_cpu()[0]


def table(rows: Iterable[tuple[Case, dict]], head: Iterable[str], target: str, peak: Peak) -> str:
    """Return kernel_grid.md: the means of every kind, then every case, by time lost."""
    found = [(case, row) for case, row in rows]
    good = [(case, row) for case, row in found if "failed" not in row]
    reads = ", ".join(f"{rate / 1e9:.0f}" for rate in peak.bytes.values())
    lines = [
        "# Grid of kernels", "", *head, "",
        f"Single operators built for {target}, one thread, turn by turn; the best turn's median counts. Ratio: ÷ ONNX",
        f"Runtime, whose vectors are the machine's widest. Peak of the target's instructions: {peak.flops / 1e9:.0f} Gflop/s;",
        f"reads of caches and memory: {reads} GB/s. Roofline: the least time these allow ÷ the time taken. Before: the time of",
        "the other checkout's library ÷ the time taken.", "",
        "| kind | cases | ratio | worst | roofline, from 1 Mflop | least | before | least |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]  # fmt: skip
    kinds = list(dict.fromkeys(case.kind for case, _ in good))
    for kind in [*kinds, None]:
        own = [row for case, row in good if kind in (case.kind, None)]
        ratios = [row["ms"] / row["onnxruntime"] for row in own]
        large = [row["roofline"] / row["ms"] for row in own if row["flops"] >= LARGE]
        share = f"{geometric_mean(large):.2f} | {min(large):.2f}" if large else " | "
        gains = [row["before"] / row["ms"] for row in own if "before" in row]
        gain = f"{geometric_mean(gains):.2f} | {min(gains):.2f}" if gains else " | "
        title = kind or "**all**"
        lines.append(f"| {title} | {len(own)} | {geometric_mean(ratios):.2f} | {max(ratios):.2f} | {share} | {gain} |")
    lines += [
        "", "Every case, first the most time lost to ONNX Runtime.", "",
        "| case | Mflop | ms | ONNX Runtime | ratio | roofline | before | code |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]  # fmt: skip
    for case, row in sorted(good, key=lambda each: each[1]["onnxruntime"] / each[1]["ms"]):
        lines.append(
            f"| {case.title} | {case.flops / 1e6:.2f} | {row['ms']:.4f} | {row['onnxruntime']:.4f} "
            f"| {row['ms'] / row['onnxruntime']:.2f} | {row['roofline'] / row['ms']:.2f} "
            f"| {format(row['before'] / row['ms'], '.2f') if 'before' in row else ''} | {row['code']:,} |"
        )
    lines += [f"| {case.title} | failed: {row['failed']} | | | | | | |" for case, row in found if "failed" in row]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="regular expression: only cases whose title it is found in")
    parser.add_argument("--before", type=Path, help="a checkout of another commit, with its .venv")
    parser.add_argument(
        "--target", help="device; default: that of the widest vectors which run here, as ONNX Runtime takes"
    )
    arguments = parser.parse_args()
    target = get_target(arguments.target or widest())
    chosen = [case for case in cases() if re.search(arguments.only, case.title)]
    origin, folder = begin("kernel_grid")
    results = folder / target.name
    (others := results / "before").mkdir(parents=True, exist_ok=True)
    if arguments.before:
        python = arguments.before.resolve() / ".venv/bin/python"
        command = [python, HERE / "grid_libraries.py", others, target.name, arguments.only]
        subprocess.run(command, check=True)
    peak = measure_peak(target)
    rows: list[tuple[Case, dict]] = []
    for case in chosen:
        file = results / f"{slug(case)}.json"
        if arguments.only or not file.exists():
            row = _row(case, target, peak, others / slug(case) / "libgrid.so")
            write_text(file, json.dumps(row, indent=1) + "\n")
            sys.stdout.write(f"{case.title}: {json.dumps(row)}\n")
            sys.stdout.flush()
        rows.append((case, json.loads(file.read_text(encoding="utf-8"))))
    text = table(
        rows,
        origin.lines(".venv/bin/python benchmarks/kernel_grid.py" + " --before PATH" * bool(arguments.before)),
        target.name,
        peak,
    )
    if arguments.only:
        sys.stdout.write(text)
    else:
        write_text(HERE / "results" / "kernel_grid.md", text)


def _row(case: Case, target: Target, peak: Peak, before: Path) -> dict:
    try:
        row = measure(case, target, peak, before)
    except (PassfitError, RuntimeError) as error:
        return {"failed": f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"}
    if row["error"] > TOLERANCE:
        return {"failed": f"its error is {row['error']:.1e}"}
    return row


if __name__ == "__main__":
    main()
