"""Compare the ram of two int8 networks for microcontrollers with published figures; write results/literature.md.

    .venv/bin/python benchmarks/literature.py                              both networks, by all settings
    .venv/bin/python benchmarks/literature.py --model mcunet-vww-int8 --setting default

`passfit image` searches for each setting, and runs the image. Rows are kept by commit; --table writes the page of those at hand.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from head import begin
from main_tables import LIMIT, RESULTS, run_passfit
from models import Model, written_once
from zoo import MICRO

from passfit.memory.files.plan_file import read_plan
from passfit.memory.liveness import live_bytes
from passfit.program import Program

#: the board of TinyEngine's own figures, run as mps2-an500
TARGET = "stm32f746"
_ANY_TIME = "--max-slowdown=none"
SETTINGS = {
    "default": (),
    "whole kernels": ("--no-splits",),
    "1.1 × arithmetic": ("--max-extra-compute=0.1", _ANY_TIME),
    "1.3 × arithmetic": ("--max-extra-compute=0.3", _ANY_TIME),
    "any arithmetic": ("--max-extra-compute=10", _ANY_TIME),
}
#: by network: who, kB of 1,000 bytes, what they count, their extra arithmetic if they state it, and where
PUBLISHED = {
    "mobilenet_v2-0.35-int8": (
        ("TinyEngine (mbv2-320kB)", 308, "all SRAM, STM32F746", None, "mit-han-lab/mcunet, README"),
        ("msf-CNN, layer by layer", 194, "without input, output, residuals", 0.0, "Huang & Baccelli, NeurIPS 2025"),
        ("msf-CNN, 1.1 × arithmetic", 68, "without input, output, residuals", 0.1, "Huang & Baccelli, NeurIPS 2025"),
        ("msf-CNN, 1.3 × arithmetic", 21, "without input, output, residuals", 0.3, "Huang & Baccelli, NeurIPS 2025"),
    ),
    "mcunet-vww-int8": (
        ("TFLite Micro, CMSIS-NN (mcunet-vww1)", 220, "all SRAM, STM32H743", None, "mit-han-lab/tinyengine, README"),
        ("X-CUBE-AI 7.3", 113, "all SRAM, STM32H743", None, "mit-han-lab/tinyengine, README"),
        ("TinyEngine", 92, "all SRAM, STM32H743", None, "mit-han-lab/tinyengine, README"),
        ("TinyEngine in 2020 (mcunet-5fps-vww)", 162, "all SRAM, STM32F746", None, "mit-han-lab/mcunet, README"),
    ),
}  # fmt: skip


def measure(name: str, setting: str) -> dict:
    """Search a network by a setting, and run its image. Returns its row; one with `failed` gives the reason."""
    model = Model(name, str(written_once(name, MICRO[name])))
    with tempfile.TemporaryDirectory(prefix="passfit-bench-") as scratch:
        out = Path(scratch) / "out"
        arguments = ["image", *model.arguments(), f"--target={TARGET}", *SETTINGS[setting], f"--out={out}"]
        failed, spent = run_passfit(arguments, Path(scratch), 4 * LIMIT)
        return {"failed": failed} if failed else row_of(out) | {"seconds": spent["processor"]}


def row_of(out: Path) -> dict:
    """Read the row of a folder that `passfit image` wrote."""
    report = json.loads((out / "footprint.json").read_text(encoding="utf-8"))
    search = json.loads((out / "search.json").read_text(encoding="utf-8"))
    program = read_plan(out / "plan.json").program
    measured = report["measured"]
    row = {part: report["best"][part] for part in ("ram", "arena", "stack", "flash")}
    row |= {
        "inside": without_ports(program),
        "extra": search["extra_compute"],
        "instructions": measured["instructions"],
    }
    row["ports"] = sum(program.tensors[port.tensor].nbytes for port in (*program.inputs, *program.outputs))
    return row | {"equal": measured["max_abs_error"] == 0, "ended_by": search.get("ended_by", "")}


def without_ports(program: Program) -> int:
    """Return the most live bytes of a step, without unread inputs and written outputs."""
    moments = live_bytes(program)
    steps = list(enumerate(program.steps))
    for port in program.inputs:
        last = max((number for number, step in steps if port.tensor in step.reads), default=0)
        for number in range(last + 1):
            moments[number] -= program.tensors[port.tensor].nbytes
    for tensor in {port.tensor for port in program.outputs}:
        first = min((number for number, step in steps if tensor in step.writes), default=len(moments))
        for number in range(first, len(moments)):
            moments[number] -= program.tensors[tensor].nbytes
    return max(moments)


def table(rows: Mapping[tuple[str, str], dict], head: Iterable[str]) -> str:
    """Return literature.md; rows are by network and setting."""
    lines = [
        "# Networks of the literature, int8", "", *head, "",
        f"Images of {TARGET} (Cortex-M7), run by QEMU; bytes. Ram is .data, .bss and the painted stack, with inputs and outputs. Inside:",
        "the most bytes of tensors alive at one step, without an input until it was read, and without an output once it is written;",
        "residuals count, and so do the lines that split kernels keep. Arithmetic: of the delivered plan, relative to whole kernels.",
        "Outputs equal ONNX Runtime's. The networks have the published shapes, parameters and multiply-adds; weights are random.", "",
        "| network | setting | ram | of it arena | of it stack | inside | arithmetic | flash | instructions | seconds of search |",
        "| --- | --- |" + " ---: |" * 8,
    ]  # fmt: skip
    for (name, setting), row in rows.items():
        if "failed" in row:
            lines.append(f"| {name} | {setting}: failed: {' '.join(row['failed'].split())} |" + " |" * 8)
            continue
        count = "" if row["instructions"] is None else f"{row['instructions']:,}"
        sizes = " | ".join(f"{row[part]:,}" for part in ("ram", "arena", "stack", "inside"))
        wrong = "" if row["equal"] else " (outputs differ)"
        lines.append(
            f"| {name} | {setting}{wrong} | {sizes} | {1 + row['extra']:.2f} | {row['flash']:,} | {count} | {row['seconds']:.0f} |"
        )
    lines += [
        "", "Published, in kB of 1,000 bytes. Ours: the least here that counts the same, by the default setting where they state no",
        "arithmetic, else with no more of it than they take. Ratio: ours ÷ theirs. Plans here are searched for the least ram with inputs",
        "and outputs, so that nothing is gained below the step that reads the input: figures without them are not the aim of a search. A second",
        "row adds input and output of the network to theirs.", "",
        "| network | who | kB | counted | ours | arithmetic | ratio | source |", "| --- | --- | ---: | --- | ---: | ---: | ---: | --- |",
    ]  # fmt: skip
    for name, found in PUBLISHED.items():
        own = {setting: row for (network, setting), row in rows.items() if network == name and "failed" not in row}
        for who, size, counted, most, source in found:
            lines.append(_published(own, name, who, size * 1000, counted, most, source))
            if counted.startswith("without") and own:
                ports = next(iter(own.values()))["ports"]
                lines.append(
                    _published(
                        own, name, f"{who}, and {ports:,} B", size * 1000 + ports, "with input and output", most, source
                    )
                )
    return "\n".join(lines) + "\n"


def _published(
    own: Mapping[str, dict], name: str, who: str, size: int, counted: str, most: float | None, source: str
) -> str:
    best = _ours(own, counted, most)
    ours = " | | " if best is None else f"{best[0]:,} | {1 + best[1]:.2f} | {best[0] / size:.2f}"
    return f"| {name} | {who} | {size / 1000:.0f} | {counted} | {ours} | {source} |"


def _ours(own: Mapping[str, dict], counted: str, most: float | None) -> tuple[int, float] | None:
    """Return our least bytes, counted as theirs, and the extra arithmetic: at most `most`, or the default's if that is None."""
    part = "inside" if counted.startswith("without") else "ram"
    chosen = [
        row for setting, row in own.items() if (setting == "default" if most is None else row["extra"] <= most + 0.005)
    ]
    return min(((row[part], row["extra"]) for row in chosen), default=None)


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--model", choices=MICRO, action="append", help="only this one; repeatable")
    parser.add_argument("--setting", choices=SETTINGS, action="append", help="only this one; repeatable")
    parser.add_argument("--table", action="store_true", help="measure nothing; write the page of the rows at hand")
    arguments = parser.parse_args()
    origin, folder = begin("literature")
    rows = {}
    for name in MICRO:
        for setting in SETTINGS:
            kept = folder / f"{name} {setting}.json"
            chosen = name in (arguments.model or MICRO) and setting in (arguments.setting or SETTINGS)
            if chosen and not kept.exists() and not arguments.table:
                kept.write_text(json.dumps(measure(name, setting), indent=1) + "\n", encoding="utf-8")
            if kept.exists():
                rows[name, setting] = json.loads(kept.read_text(encoding="utf-8"))
                print(f"{name}, {setting}: {json.dumps(rows[name, setting])}", flush=True)
    text = table(rows, origin.lines(".venv/bin/python benchmarks/literature.py"))
    (RESULTS / "literature.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
