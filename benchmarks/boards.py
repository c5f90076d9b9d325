"""Run the models of MLPerf Tiny on the emulated boards; write results/boards.md.

    .venv/bin/python benchmarks/boards.py [DIR]      default: ../shared/mlperf_tiny; without it, nothing is done

Each model is searched once by `passfit optimize`, for SEARCHED with all defaults, and its sequence compiled by `passfit image`
for every board. Verification compares integers one by one, floats within 1e-4 of their range.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable
from pathlib import Path

import onnx
from main_tables import LIMIT, run_passfit
from mlperf_tiny import INPUTS, write_page
from models import Model

BOARDS = ("mps2-an386", "mps2-an500", "mps3-an547", "rv32-virt")
SEARCHED = "mps2-an386"
#: published millions of cycles, the best of three vendors each: MLPerf Tiny's results, on Cortex-M4 and Cortex-M7
PUBLISHED = {
    "mps2-an386": {"ad": 0.49, "kws": 5.2, "ic": 19.8, "vww": 10.7}, "mps2-an500": {"ad": 0.30, "kws": 3.2, "ic": 11.4, "vww": 6.7},
}  # fmt: skip
_PARTS = ("ram", "arena", "stack", "flash", "weights", "code")


def measure(file: Path) -> dict:
    """Search a model, and make its image for every board. Returns its row, by board; one with `failed` gives the reason."""
    name = file.stem.partition("-")[0]
    model = Model(
        file.stem.replace("-", "_"), str(file), shapes={onnx.load(file).graph.input[0].name: [1, *INPUTS[name]]}
    )
    with tempfile.TemporaryDirectory(prefix="passfit-bench-") as scratch:
        found = Path(scratch) / "found"
        failed, _ = run_passfit(
            ["optimize", *model.arguments(), f"--target={SEARCHED}", f"--out={found}"], Path(scratch), LIMIT
        )
        return {"failed": failed} if failed else {board: _image(model, board, found, Path(scratch)) for board in BOARDS}


def _image(model: Model, board: str, found: Path, scratch: Path) -> dict:
    out = scratch / board
    arguments = [
        "image",
        *model.arguments(),
        f"--target={board}",
        f"--sequence={found / 'sequence.json'}",
        f"--out={out}",
    ]
    failed, _ = run_passfit(arguments, scratch, LIMIT)
    if failed:
        return {"failed": failed}
    report = json.loads((out / "footprint.json").read_text(encoding="utf-8"))
    measured = report["measured"]
    if not measured["ran"]:
        return {"failed": measured["how"]}
    error = "equal" if measured["max_abs_error"] == 0 else f"{measured['max_rel_error']:.0e} of the range"
    return {part: report["best"][part] for part in _PARTS} | {
        "instructions": measured["instructions"],
        "estimated": (measured["estimated"] or {}).get("cycles"),
        "error": error,
        "fits": report["fits"],
    }


def table(rows: dict[str, dict], head: Iterable[str]) -> str:
    """Return boards.md."""
    lines = [
        "# Boards without an operating system", "", *head, "",
        "The models of MLPerf Tiny, each by the sequence that one search found for a Cortex-M4. Bytes, as linked: ram is .data,",
        ".bss and the painted stack, with inputs and outputs; flash .text, .rodata and .data, without start-up. Instructions are",
        "those an emulator executes in one run; cycles are estimated from them by class, in brackets at least and at most, on memory",
        "without waits. Published are the best cycles of three vendors each, on silicon; ratio is estimated ÷ published.",
        "Outputs: those of ONNX Runtime, on the file; integers equal.", "",
        "| model | board | ram | of it stack | flash | of it code | instructions | cycles | published | ratio | outputs |",
        "| --- | --- |" + " ---: |" * 9,
    ]  # fmt: skip
    for name, row in rows.items():
        for board in BOARDS if "failed" not in row else ():
            lines.append(_line(name, board, row[board]))
        if "failed" in row:
            lines.append(f"| {name} | failed: {' '.join(row['failed'].split())} |" + " |" * 9)
    return "\n".join(lines) + "\n"


def _line(name: str, board: str, found: dict) -> str:
    if "failed" in found:
        return f"| {name} | {board}: {' '.join(found['failed'].split())} |" + " |" * 9
    published = PUBLISHED.get(board, {}).get(name.partition("-")[0]) if name.endswith("int8") else None
    ratio = " | ".join(
        ("", "")
        if published is None or found["estimated"] is None
        else (f"{published * 1e6:,.0f}", f"{found['estimated'][1] / published / 1e6:.2f}")
    )
    sizes = " | ".join(f"{found[part]:,}" for part in ("ram", "stack", "flash", "code", "instructions"))
    least, likely, most = found["estimated"] or (None,) * 3
    cycles = "" if likely is None else f"{likely:,} ({least:,} to {most:,})"
    return f"| {name} | {board}{'' if found['fits'] else ' (does not fit)'} | {sizes} | {cycles} | {ratio} | {found['error']} |"


if __name__ == "__main__":
    write_page("boards", str(__doc__), measure, table)
