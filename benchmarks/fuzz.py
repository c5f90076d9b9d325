"""Run the fuzzer at length; write results/fuzz.md, the counts by operator and verdict.

    .venv/bin/python benchmarks/fuzz.py                       10,000 operators, then 1,000 networks
    .venv/bin/python benchmarks/fuzz.py --operators 500       so many, from the first seed; nothing is written

A case is its seed: see tests/fuzz. Results are kept by commit, machine and versions: an interrupted run goes on.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from head import begin, publish
from tables import plain

sys.path.append(str(Path(__file__).parents[1]))
from tests.fuzz.campaign import running
from tests.fuzz.judge import FAULTS, VERDICTS

#: characters of a reason in a table
CELL = 220
#: cases of each kind
COUNTS = {"operators": 10_000, "networks": 1_000}
Row = dict[str, Any]


def known_rows(file: Path, count: int) -> dict[int, Row]:
    """Read the rows of the first `count` seeds."""
    rows = map(json.loads, file.read_text(encoding="utf-8").splitlines()) if file.exists() else ()
    return {row["seed"]: row for row in rows if row["seed"] < count}


def run(kind: str, count: int, processes: int, folder: Path) -> list[Row]:
    """Run the seeds that are not known yet; return all rows by seed."""
    file = folder / f"{kind}.jsonl"
    rows = known_rows(file, count)
    open_seeds = [seed for seed in range(count) if seed not in rows]
    with file.open("a", encoding="utf-8") as written:
        for result in running(kind, open_seeds, processes=processes) if open_seeds else ():
            rows[result.seed] = row = vars(result) | {"kind": result.kind}
            written.write(json.dumps(row) + "\n")
            written.flush()
            if result.verdict in FAULTS:
                print(result.line, flush=True)
    return [rows[seed] for seed in sorted(rows)]


def page(found: dict[str, list[Row]], head: Sequence[str]) -> Iterator[str]:
    """Yield the lines of fuzz.md."""
    yield from ("# Fuzzer", "", *head, "")
    yield "Random models, compiled, run, and compared with ONNX Runtime on the file. Networks follow random sequences of passes and"
    yield "splits; they are compared with their unsplit selves too, in result and in time, and run on NaN, infinities and the largest"
    yield "floats. Illegal: ONNX Runtime and ONNX's evaluator take no draw of the seed. Disputed: the two differ, and the library agrees"
    yield "with the latter, or ONNX leaves the result open. Unclear: a refusal that shows its inside. `tests/fuzz` has the rules."
    for kind, rows in found.items():
        yield from ("", f"## {kind.capitalize()}: {len(rows):,}", "")
        yield from _counts(rows)
    faults = [row for rows in found.values() for row in rows if row["verdict"] in FAULTS]
    if faults:
        yield from ("", "## Faults", "", "| verdict | seed | case | reason |", "| --- | ---: | --- | --- |")
        yield from (
            f"| {row['verdict']} | {row['seed']} | {row['title']} | {plain(row['reason'], CELL)} |" for row in faults
        )
    yield from ("", "## Reasons of refusals", "", "| operator | cases | reason |", "| --- | ---: | --- |")
    reasons = Counter(
        ("*", "it holds bfloat16 numbers") if "bfloat" in row["reason"] else (row["title"].split("-")[0], row["kind"])
        for rows in found.values() for row in rows if row["verdict"] == "refused"
    )  # fmt: skip
    yield from (f"| {title} | {count} | {plain(reason, CELL)} |" for (title, reason), count in reasons.most_common())


def _counts(rows: Sequence[Row]) -> Iterator[str]:
    """Count the cases of each operator, of all its sets, by verdict."""
    total = Counter(row["verdict"] for row in rows)
    shown = [verdict for verdict in VERDICTS if total[verdict] or verdict in ("wrong", "crash", "hang")]
    yield f"| case | {' | '.join(shown)} |"
    yield f"| --- |{' ---: |' * len(shown)}"
    titles = sorted({row["title"].split("-")[0] for row in rows})
    for title in titles:
        counts = Counter(row["verdict"] for row in rows if row["title"].split("-")[0] == title)
        yield f"| {title} | {' | '.join(str(counts[verdict] or '·') for verdict in shown)} |"
    yield f"| **all** | {' | '.join(f'**{total[verdict]:,}**' for verdict in shown)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for kind, count in COUNTS.items():
        parser.add_argument(f"--{kind}", type=int, default=count)
    parser.add_argument("--processes", type=int, default=2)
    arguments = parser.parse_args()
    origin, folder = begin("fuzz")
    counts = {kind: getattr(arguments, kind) for kind in COUNTS}
    found = {kind: run(kind, count, arguments.processes, folder) for kind, count in counts.items() if count}
    text = "\n".join(page(found, origin.lines(".venv/bin/python benchmarks/fuzz.py"))) + "\n"
    publish("fuzz", text, whole=counts == COUNTS)


if __name__ == "__main__":
    main()
