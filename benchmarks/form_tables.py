"""Compile the networks of forms/ and time them beside ONNX Runtime; write results/forms.md.

    .venv/bin/python benchmarks/form_tables.py                        all networks, small ones first
    .venv/bin/python benchmarks/form_tables.py --only circular_conv   those of a name or form; their table is printed
    .venv/bin/python benchmarks/form_tables.py --only gru_denoiser --page recurrent     write theirs as results/recurrent.md
    .venv/bin/python benchmarks/form_tables.py --tables               write the table of the rows measured so far

A row is kept as soon as it is known, by commit, machine and versions, as in main_tables.py. `passfit compile`, all
defaults, for x86-64-v3; `passfit profile --kernels` replays its sequence.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from forms import FORMS
from head import begin, publish
from main_tables import LIMIT, NARROW, measure_missing, rows_of, run_passfit, timed
from models import Model, geometric_mean, written_once
from predictions import Pair, fit_of, rate_of
from tables import latency_ratio, plain
from timing import fastest

from passfit.support.sizes import format_bytes

#: kernels are listed that take more than this share of a run, and reach less than that share of the roofline
TAKES, REACHES = 0.05, 0.1
#: times of ONNX Runtime above which a network is listed
SLOW = 3.0


def models() -> list[Model]:
    """Return the networks as models with a file each."""
    return [Model(name, str(written_once(name, build))) for name, build in FORMS.items()]


def measure(model: Model, limit: float) -> dict:
    """Compile, profile and time a network. Returns its row; one with `failed` gives the reason."""
    with tempfile.TemporaryDirectory(prefix="passfit-bench-") as name:
        scratch = Path(name)
        out, kernels = scratch / "out", scratch / "kernels.json"
        target = [*model.arguments(), f"--target={NARROW}"]
        failed, spent = run_passfit(["compile", *target, f"--out={out}"], scratch, limit)
        if failed:
            return {"failed": failed, "compile": spent}
        row = {"compile": spent}
        for part in ("footprint", "sequence"):
            row[part] = json.loads((out / f"{part}.json").read_text(encoding="utf-8"))
        profile = ["profile", *target, "--kernels", f"--sequence={out / 'sequence.json'}", f"--out={kernels}"]
        failed, _ = run_passfit(profile, scratch, limit)
        row["kernels"] = {"failed": failed} if failed else json.loads(kernels.read_text(encoding="utf-8"))
        row["latency"] = timed(model, {"passfit": out}, least=True)
        return row


def table(rows: Mapping[Model, dict], head: Iterable[str]) -> str:
    """Return forms.md: time, ram, compile time and slowest kernel of each network, then the cliffs."""
    done = {model: row for model, row in rows.items() if failure(row) is None}
    pairs = _pairs(done)
    rate = rate_of(pairs)
    lines = [
        "# Forms that other tables lack", "", *head, f"* models: {len(rows)}, {len(rows) - len(done)} of them failed", "",
        "Milliseconds of processor time of the shortest run, one thread each, turn by turn in one process. passfit: the default library, built for x86-64-v3. ONNX Runtime: the machine's widest vectors. Predicted: the model's cycles at the rate",
        f"that fits all rows best, {rate:.2f} a ns. Processor: seconds of `passfit compile`. Slowest: the kernel that takes most",
        "of the run, its share of the run, and of the roofline.", "",
        "| model | ONNX Runtime | passfit | ratio | predicted | ram | processor | slowest | share | roofline |",
        "| --- |" + " ---: |" * 6 + " --- | ---: | ---: |",
    ]  # fmt: skip
    for model, row in rows.items():
        if why := failure(row):
            lines.append(f"| {model.name} | failed: {plain(why)} |" + " |" * 8)
            continue
        slow = max(row["kernels"]["kernels"], key=lambda kernel: kernel["ns"])
        lines.append(
            f"| {model.name} | {fastest(row['latency']):.3f} | {ours(row):.3f} | {latency_ratio(row):.2f} | {_cycles(row) / rate / 1e6:.3f} "
            f"| {format_bytes(row['footprint']['best']['ram'])} | {row['compile']['processor']:.0f} "
            f"| k{slow['step']:02d} {slow['kernel']} | {slow['ns'] / row['kernels']['run_ns']:.0%} | {roofline(slow):.2f} |"
        )
    if done:
        mean = geometric_mean([latency_ratio(row) for row in done.values()])
        worst = max(done, key=lambda model: latency_ratio(done[model]))
        lines.append(f"| **geometric mean** ({len(done)}) | | | **{mean:.2f}** | | | | | | |")
        lines += [
            "",
            f"Worst: {worst.name}, {latency_ratio(done[worst]):.2f}. Above {SLOW:g}: {_above(done)}. {fit_of(pairs)}",
            "",
        ]
    return "\n".join([*lines, *_cliffs(done)]) + "\n"


def _said(row: dict) -> str:
    return failure(row) or f"{latency_ratio(row):.2f} of the time of ONNX Runtime"


def failure(row: Mapping) -> str | None:
    """Return why a row lacks figures."""
    return next(
        (part["failed"] for part in (row, row.get("kernels", {}), row.get("latency", {})) if "failed" in part), None
    )


def ours(row: Mapping) -> float:
    return min(row["latency"]["passfit"])


def roofline(kernel: Mapping) -> float:
    return min(1.0, kernel["least_ns"] / max(kernel["ns"], 1))


def _above(done: Mapping[Model, dict]) -> str:
    return (
        ", ".join(f"{model.name} {latency_ratio(row):.1f}" for model, row in done.items() if latency_ratio(row) > SLOW)
        or "none"
    )


def _cycles(row: Mapping) -> int:
    return sum(kernel["cycles"] for kernel in row["kernels"]["kernels"])


def _pairs(done: Mapping[Model, dict]) -> dict[str, Pair]:
    """Pair predicted cycles with milliseconds, by model."""
    return {model.name: (_cycles(row), ours(row)) for model, row in done.items()}


def _cliffs(done: Mapping[Model, dict]) -> list[str]:
    found = [
        (kernel["ns"] / row["kernels"]["run_ns"], model.name, kernel)
        for model, row in done.items()
        for kernel in row["kernels"]["kernels"]
        if roofline(kernel) < REACHES and kernel["ns"] > TAKES * row["kernels"]["run_ns"]
    ]
    lines = [
        f"## Kernels below {REACHES:g} of the roofline that take more than {TAKES:.0%}", "",
        "| model | kernel | nodes | µs | Mop | roofline | share |", "| --- | --- | ---: | ---: | ---: | ---: | ---: |",
    ]  # fmt: skip
    for share, name, kernel in sorted(found, key=lambda each: (-each[0], each[1], each[2]["step"])):
        lines.append(
            f"| {name} | k{kernel['step']:02d} {kernel['kernel']} | {len(kernel['nodes'])} | {kernel['ns'] / 1e3:.1f} "
            f"| {kernel['operations'] / 1e6:.3f} | {roofline(kernel):.3f} | {share:.0%} |"
        )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--only", action="append", help="only networks of this name or form, and print their table; repeatable"
    )
    parser.add_argument("--page", help="with --only: write their table as a page of results, of this name")
    parser.add_argument("--again", action="store_true", help="measure again what is known at this commit")
    parser.add_argument("--tables", action="store_true", help="measure nothing; write the table of the rows at hand")
    parser.add_argument(
        "--limit", type=float, default=LIMIT, help="seconds until a compilation is given up (default: 900)"
    )
    arguments = parser.parse_args()
    chosen = [
        model
        for model in models()
        if not arguments.only or any(model.name in (each, f"{each}-large") for each in arguments.only)
    ]
    if not chosen:
        parser.error(f"no network of these names: choose from {', '.join(FORMS)}.")
    origin, folder = begin("forms")
    if not arguments.tables:
        measure_missing(chosen, folder, lambda model: measure(model, arguments.limit), _said, arguments.again)
    asked = "".join(f" --only {name}" for name in arguments.only or ())
    asked += f" --page {arguments.page}" if arguments.page else ""
    text = table(rows_of(chosen, folder), origin.lines(f".venv/bin/python benchmarks/form_tables.py{asked}"))
    publish(arguments.page or "forms", text, whole=bool(arguments.page) or not arguments.only)


if __name__ == "__main__":
    main()
