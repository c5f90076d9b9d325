"""Profile every kernel of every model beside the roofline of one core; write results/roofline.md.

    .venv/bin/python benchmarks/roofline.py                     all models, some seconds each after main_tables.py
    .venv/bin/python benchmarks/roofline.py --model mtcnn-rnet   one model; its table is printed, not written

Each library replays the sequence that main_tables.py found at this commit, or searches for one, for the widest vectors
of the machine; `passfit profile --kernels` times its kernels. Rows are kept by commit.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Mapping
from pathlib import Path

from head import begin, publish
from main_tables import LIMIT, measure_missing, rows_of, run_passfit, widest
from models import Model, geometric_mean, models

#: kernels in the list of lost time
LISTED = 60
#: multiply-adds from which a kernel counts: half a Mflop
LARGE = 500_000


def measure(model: Model, sequence: object | None) -> dict:
    """Profile the kernels of a model's library. Returns kernels.json, or `failed` with the reason."""
    with tempfile.TemporaryDirectory(prefix="passfit-roofline-") as scratch:
        folder = Path(scratch)
        replay = []
        if sequence is not None:
            (folder / "sequence.json").write_text(json.dumps(sequence), encoding="utf-8")
            replay = [f"--sequence={folder / 'sequence.json'}"]
        out = folder / "kernels.json"
        arguments = ["profile", *model.arguments(), "--kernels", *replay, f"--target={widest()}", f"--out={out}"]
        failed, _ = run_passfit(arguments, folder, LIMIT)
        return {"failed": failed} if failed else json.loads(out.read_text(encoding="utf-8"))


def table(rows: Mapping[Model, dict], head: list[str]) -> str:
    """Return roofline.md: the models, their large kernels, and the kernels that lose most of their model's time."""
    done = {model: row for model, row in rows.items() if "failed" not in row}
    lines = [
        "# Kernels of all models beside the roofline", "", *head, "",
        "Roofline: the least time this core needs for a kernel's operations, and for the bytes read and written, ÷ the time",
        "taken, at most 1: a nearer cache may hold the bytes. Large: kernels of a Mflop or more. Below half: their number,",
        "and their share of the run.",
        "",
        "| model | ms | kernels | roofline | large | roofline of large | below half | share |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]  # fmt: skip
    for model, row in done.items():
        large = _large(row)
        slow = [kernel for kernel in large if kernel["least_ns"] < kernel["ns"] / 2]
        share = sum(kernel["ns"] for kernel in slow) / row["run_ns"]
        lines.append(
            f"| {model.title} | {row['run_ns'] / 1e6:.3f} | {len(row['kernels'])} | {_reached(row['kernels'])} | {len(large)} "
            f"| {_reached(large)} | {len(slow)} | {share:.0%} |"
        )
    shares = [[_share(row["kernels"]), _share(_large(row))] for row in done.values()]
    means = [
        geometric_mean(known) if (known := [each for each in column if each]) else 0
        for column in zip(*shares, strict=True)
    ]
    lines += [f"| **geometric mean** ({len(done)}) | | | **{means[0]:.2f}** | | **{means[1]:.2f}** | | |", ""]
    lines += [f"* {model.name}: {row['failed']}" for model, row in rows.items() if "failed" in row]
    return "\n".join([*lines, *_lost(done)]) + "\n"


def _lost(done: Mapping[Model, dict]) -> list[str]:
    """List the kernels that lose most of their model's time."""
    lost = [
        ((kernel["ns"] - kernel["least_ns"]) / row["run_ns"], model.name, kernel)
        for model, row in done.items()
        for kernel in row["kernels"]
        if kernel["ns"] > kernel["least_ns"]
    ]
    lost.sort(key=lambda each: (-each[0], each[1], each[2]["step"]))
    lines = [
        f"## The {LISTED} kernels that lose most", "", "Lost: the time above the roofline ÷ that of the run.", "",
        "| model | kernel | nodes | µs | Mop | roofline | lost |", "| --- | --- | ---: | ---: | ---: | ---: | ---: |",
    ]  # fmt: skip
    for share, name, kernel in lost[:LISTED]:
        lines.append(
            f"| {name} | k{kernel['step']:02d} {kernel['kernel']} | {len(kernel['nodes'])} | {kernel['ns'] / 1e3:.1f} "
            f"| {kernel['operations'] / 1e6:.3f} | {kernel['least_ns'] / max(kernel['ns'], 1):.2f} | {share:.0%} |"
        )
    return lines


def _large(row: dict) -> list[dict]:
    return [kernel for kernel in row["kernels"] if kernel["operations"] >= LARGE]


def _share(kernels: list[dict]) -> float | None:
    """Return the roofline ÷ the time of kernels; one whose bytes a nearer cache held counts as 1. None without time."""
    spent = sum(kernel["ns"] for kernel in kernels)
    return sum(min(kernel["least_ns"], kernel["ns"]) for kernel in kernels) / spent if spent else None


def _reached(kernels: list[dict]) -> str:
    share = _share(kernels)
    return "–" if share is None else f"{share:.2f}"


def _said(row: dict) -> str:
    return row.get("failed") or _reached(row["kernels"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", action="append", help="only this one, and print its table; repeatable")
    arguments = parser.parse_args()
    chosen = [model for model in models() if not arguments.model or model.name in arguments.model]
    origin, folder = begin("roofline")
    found = rows_of(chosen, folder.parent / "main_tables")
    # without --model, those that main_tables.py measured; all, if it measured none
    chosen = [model for model in chosen if model in found or arguments.model or not found]
    measure_missing(chosen, folder, lambda model: measure(model, found.get(model, {}).get("sequence")), _said)
    text = table(rows_of(chosen, folder), origin.lines(".venv/bin/python benchmarks/roofline.py"))
    publish("roofline", text, whole=not arguments.model)


if __name__ == "__main__":
    main()
