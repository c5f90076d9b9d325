"""The results of search/latency.py, and the table of them."""

from __future__ import annotations

import json

from entries import HERE, Entry, geometric_mean

from passfit.support.sizes import format_bytes

RESULTS = HERE / "results" / "latency"
COLUMNS = ("whole", "winner")


def row(found: dict) -> str:
    """One model, in a line."""
    if "failed" in found:
        return found["failed"]
    measured = [column for column in COLUMNS if column in found]
    times = (f"{column} {found[column]['ms']:.2f} ms ({_ratio(found, column):.2f}×)" for column in measured)
    return f"ONNX Runtime {found['onnxruntime']['ms']:.2f} ms, " + ", ".join(times)


def table(models: list[Entry]) -> str:
    """Markdown: one row a model, and the geometric means."""
    files = {each: RESULTS / f"{each.name}.json" for each in models}
    known = {each: json.loads(file.read_text(encoding="utf-8")) for each, file in files.items() if file.exists()}
    lines = [
        "# Milliseconds a run, beside ONNX Runtime's",
        "",
        "`.venv/bin/python benchmarks/search/latency.py`: one thread each, the same machine and instruction set (x86-64-v3), turn",
        "by turn in one run. In brackets, ÷ ONNX Runtime. Winner: the sequence of least ram, in parts (results/memory.md);",
        "whole: the same kernels, not split.",
        "",
        "| model | ONNX Runtime | whole | winner | ram whole | ram of the winner | workspace | seconds to build |",
        "| --- |" + " ---: |" * 7,
    ]
    for each, found in known.items():
        if "failed" in found:
            lines.append(f"| {each.name} | {found['failed']} | | | | | | |")
            continue
        cells = [f"{found[c]['ms']:.2f} ({_ratio(found, c):.2f}×)" if c in found else "" for c in COLUMNS]
        built = [found[c] for c in COLUMNS if c in found]
        cells += [format_bytes(found[c]["ram"]) if c in found else "" for c in COLUMNS]
        lines.append(
            f"| {each.name} | {found['onnxruntime']['ms']:.2f} | {' | '.join(cells)} "
            f"| {max(b['workspace'] for b in built)} | {max(b['seconds'] for b in built)} |"
        )
    groups = {"all": known, "without recurrent": {each: found for each, found in known.items() if not each.recurrent}}
    for title, group in groups.items():
        means = [_mean([_ratio(found, column) for found in group.values() if column in found]) for column in COLUMNS]
        lines.append(f"| **geometric mean, {title}** ({len(group)}) | | {' | '.join(means)} | | | | |")
    return "\n".join(lines) + "\n"


def _ratio(found: dict, column: str) -> float:
    return found[column]["ms"] / found["onnxruntime"]["ms"]


def _mean(ratios: list[float]) -> str:
    return f"**{geometric_mean(ratios):.2f}×** ({len(ratios)})" if ratios else ""
