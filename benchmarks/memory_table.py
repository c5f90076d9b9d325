"""The results of memory.py by model and column, and the table of them."""

from __future__ import annotations

import json
from pathlib import Path

from entries import HERE, Entry, geometric_mean

from passfit.support.sizes import format_bytes

RESULTS = HERE / "results" / "memory"
BASELINE = "tvm-default"


def file_of(entry: Entry) -> Path:
    return RESULTS / f"{entry.name}.json"


def known_of(entry: Entry) -> dict:
    """Its results by column; "" is the import."""
    file = file_of(entry)
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}


def ratio(known: dict, column: str, what: str = "ram") -> float | None:
    """To the ram of the baseline; `what` is "bound" for the ram of a plan that reaches the bound. None: not known."""
    found, base = known.get(column, {}), known.get(BASELINE, {})
    if "ram" not in found or "ram" not in base:
        return None
    return (found["ram"] - (found["arena"] - found["bound"] if what == "bound" else 0)) / base["ram"]


def table(models: list[Entry], columns: list[str]) -> str:
    """Markdown: one row a model, what the columns come to, and the seconds."""
    known = {entry: found for entry in models if (found := known_of(entry))}
    levers = [column for column in columns if column != BASELINE]
    shown = [("plain", "ram"), ("plain", "bound"), *((column, "ram") for column in levers[1:])]
    titles = ["plain", "bound of plain", *levers[1:]]
    lines = [
        "# What each lever gives",
        "",
        "`.venv/bin/python benchmarks/memory.py`: ram ÷ ram of tvm-default, for x86-64, of the same import.",
        "",
        "* plain: the kernels of tvm-default (`legalize; fold-constant; fuse-operators`) without workspaces, in the",
        "  order given, in an arena; bound of plain: were that arena no larger than the bound;",
        "* order, in-place, concat-inside: plain and `order`, `share{copies=0}`, `share{in_place=0}`; order + both:",
        "  plain and `share; order`; search: what `passfit optimize --no-splits` finds, on one core;",
        "* split: plain, run in parts where that lowers the peak, nothing shared, nothing computed twice; everything: what",
        "  `passfit compile` makes after a short search, with all levers, at most a quarter more arithmetic.",
        "",
        f"| model | tvm-default | {' | '.join(titles)} |",
        f"| --- | ---: |{' ---: |' * len(titles)}",
    ]
    for entry, found in known.items():
        base = format_bytes(found[BASELINE]["ram"]) if "ram" in found.get(BASELINE, {}) else "failed"
        cells = [cell(found, column, ratio(found, column, what)) for column, what in shown]
        lines.append(f"| {_title(entry)} | {base} | {' | '.join(cells)} |")
    groups = {
        "all": list(known),
        "without recurrent": [entry for entry in known if not entry.recurrent],
        "models.toml, without recurrent": [entry for entry in known if entry.source and not entry.recurrent],
        "zoo": [entry for entry in known if not entry.source],
    }
    for title, group in groups.items():
        means = [_mean([ratio(known[entry], column, what) for entry in group]) for column, what in shown]
        lines.append(f"| **geometric mean, {title}** ({len(group)}) | | {' | '.join(means)} |")
    lines += ["", *_counts(known, levers), "", *_executed(known), "", *_seconds(known, columns), ""]
    failed = [
        f"* {entry.name}, {column}: {row['failed']}"
        for entry, found in known.items()
        for column, row in found.items()
        if "failed" in row
    ]
    if failed:
        lines += ["## Failed", "", *failed, ""]
    return "\n".join(lines)


def _counts(known: dict[Entry, dict], levers: list[str]) -> list[str]:
    lines = [
        "## How good that is",
        "",
        "Models where the arena is equal to the bound (no plan of this order is smaller); where, besides, no order of",
        "these kernels, sharing the same memory, is better; where ram is above, equal to, below that of tvm-default.",
        "",
        "| column | models | bound reached | proved | above tvm-default | equal | below |",
        "| --- |" + " ---: |" * 6,
    ]
    for column in levers:
        rows = [found[column] for found in known.values() if "ram" in found.get(column, {})]
        ratios = [value for found in known.values() if (value := ratio(found, column)) is not None]
        reached, proved = (sum(row[what] for row in rows) for what in ("reached", "proved"))
        above, equal = sum(value > 1 for value in ratios), sum(value == 1 for value in ratios)
        below = len(ratios) - above - equal
        lines.append(f"| {column} | {len(rows)} | {reached} | {proved} | {above} | {equal} | {below} |")
    return lines


def _executed(known: dict[Entry, dict]) -> list[str]:
    lines = [
        "## Everything, executed",
        "",
        "Natively, each in a process of its own, on a busy machine, so that ms are rough. Measured: anonymous memory gained",
        "over an empty process, in whole pages. Error: the largest, relative to the range of the output of ONNX Runtime.",
        "",
        "| model | ram | measured | error | ms | more arithmetic | kernels |",
        "| --- |" + " ---: |" * 6,
    ]
    for entry, found in known.items():
        row = found.get("everything", {})
        if "measured" in row:
            measured = "" if row["measured"] is None else format_bytes(row["measured"])
            lines.append(
                f"| {_title(entry)} | {format_bytes(row['ram'])} | {measured} | {row['error']:.1e} | {row['ms']:.1f} "
                f"| {row['extra_compute']:.1%} | {row['kernels']} |"
            )
    return lines


def _seconds(known: dict[Entry, dict], columns: list[str]) -> list[str]:
    lines = [
        "## Seconds",
        "",
        "On one core, others busy. Plain includes passes and lowering; the next four start from its program;",
        "search starts from the import, and knows how the kernels of plain are scheduled.",
        "Import: with the download where the model was not in the cache, and with the loading of TVM in older rows.",
        "",
        f"| model | import | {' | '.join(columns)} |",
        f"| --- |{' ---: |' * (len(columns) + 1)}",
    ]
    for entry, found in known.items():
        cells = [str(found.get(column, {}).get("seconds", "")) for column in ("", *columns)]
        lines.append(f"| {_title(entry)} | {' | '.join(cells)} |")
    return lines


def _title(entry: Entry) -> str:
    return f"{entry.name} (recurrent)" if entry.recurrent else entry.name


def cell(found: dict, column: str, value: float | None) -> str:
    return f"{value:.3f}" if value is not None else "failed" if "failed" in found.get(column, {}) else ""


def _mean(ratios: list[float | None]) -> str:
    """Of those that are known; how many they are, where some are not."""
    values = [value for value in ratios if value is not None]
    if not values:
        return ""
    return f"**{geometric_mean(values):.3f}**" + (f" (of {len(values)})" if len(values) < len(ratios) else "")
