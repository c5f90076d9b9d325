"""Time regions of random networks beside the kernels they are made of; write results/unsplit.md.

    .venv/bin/python benchmarks/unsplit.py                    45 networks of planes and 15 recurrent layers
    .venv/bin/python benchmarks/unsplit.py --networks 4       so many networks, from the first seed; nothing is written

A network is its seed, see tests/fuzz/regions.py. Rows are kept by commit, machine and versions: an interrupted run goes on.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from head import begin, publish
from models import geometric_mean
from tables import plain

sys.path.append(str(Path(__file__).parents[1]))
from tests.fuzz.regions import Timed, loop_timed, regions_timed

COUNTS = {"networks": 45, "layers": 15}
#: ratio from which on a region is listed, time in ns below which the clock counts, and of a call
SLOW, SHORT, CALL = 1.5, 2_000, 20
#: characters of a title in a table
CELL = 100


def rows_of(kind: str, seed: int, folder: Path) -> list[dict]:
    """Return the rows of a network, or a layer; those of a run before, if they are known."""
    file = folder / f"{kind}-{seed}.json"
    if not file.exists():
        found = _measured(kind, seed)
        if any(each.ratio > SLOW and each.whole >= SHORT for each in found):  # other work may have taken the processor
            found = [
                replace(one, whole=min(one.whole, other.whole), split=min(one.split, other.split))
                for one, other in zip(found, _measured(kind, seed))
            ]
        file.write_text(json.dumps([asdict(each) for each in found]), encoding="utf-8")
    return [{**row, "kind": kind, "seed": seed} for row in json.loads(file.read_text(encoding="utf-8"))]


def _measured(kind: str, seed: int) -> list[Timed]:
    with tempfile.TemporaryDirectory() as place:
        return (regions_timed if kind == "networks" else loop_timed)(seed, Path(place))


def page(rows: Sequence[dict], head: Sequence[str]) -> Iterator[str]:
    """Yield the lines of unsplit.md."""
    yield from ("# Kernels in loops", "", *head, "")
    yield "Regions of random networks of floats, of up to four kernels, one, two or four rows at a time, whether they save memory or"
    yield "not: the time beside that of the same kernels outside, in one library, the least of 200 runs, or of 400 if it is above 1.5 ×."
    yield f"Recurrent layers of 12 steps: beside 12 layers of one step. What takes less than {SHORT / 1000:g} µs is left out, as it measures the"
    yield "clock. Outputs are those of ONNX Runtime."
    kept = [row for row in rows if row["whole"] >= SHORT]
    yield from (
        "",
        "| in a loop | regions | geometric mean | median | most | above 1.5 × |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    )
    for title, part in _parts(kept):
        ratios = [_timed(row).ratio for row in part]
        yield f"| {title} | {len(part)} | {geometric_mean(ratios):.2f} | {statistics.median(ratios):.2f} | {max(ratios):.2f} | {sum(each > SLOW for each in ratios)} |"
    slow = sorted((row for row in kept if _timed(row).ratio > SLOW), key=lambda row: -_timed(row).ratio)
    if slow:
        yield from ("", f"## Above {SLOW} ×", "")
        yield "Predicted: by the model of cycles, by which the search chooses rows."
        yield from (
            "",
            "| kernels | seed | rows | calls | outside, µs | ratio | predicted | reason |",
            "| --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |",
        )
        yield from (
            f"| {plain(row['title'], CELL)} | {row['seed']} | {row['rows']} | {row['calls']} | {row['whole'] / 1000:.1f} | {_timed(row).ratio:.2f} | {row['cycles']:.2f} | {_reason(row)} |"
            for row in slow
        )


def _reason(row: dict) -> str:
    """Return why a region takes longer than its kernels whole."""
    more = row["split"] - row["whole"]
    if 2 * row["calls"] * CALL > more:
        return "calls of short kernels"
    if "part" in row["parts"]:
        return "a sum in parts: its result is loaded and stored for each group of the operand's rows"
    if "tap" in row["parts"]:
        return "a window in parts: a row of the result is loaded and stored for each row of the window"
    return "a few rows fill fewer vectors, and share fewer values read, than all of them"


def _parts(rows: Sequence[dict]) -> Iterator[tuple[str, list[dict]]]:
    """Yield the parts of the first table."""
    regions = [row for row in rows if row["kind"] == "networks"]
    for count in (1, 2, 4):
        yield f"{count} row{'s' * (count > 1)} at a time", [row for row in regions if row["rows"] == count]
    yield "one kernel", [row for row in regions if " + " not in row["title"]]
    yield "several kernels", [row for row in regions if " + " in row["title"]]
    yield "recurrent layer", [row for row in rows if row["kind"] == "layers"]


def _timed(row: dict) -> Timed:
    return Timed(**{name: value for name, value in row.items() if name not in ("kind", "seed")})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for kind, count in COUNTS.items():
        parser.add_argument(f"--{kind}", type=int, default=count)
    arguments = parser.parse_args()
    origin, folder = begin("unsplit")
    counts = {kind: getattr(arguments, kind) for kind in COUNTS}
    rows = [row for kind, count in counts.items() for seed in range(count) for row in rows_of(kind, seed, folder)]
    text = "\n".join(page(rows, origin.lines(".venv/bin/python benchmarks/unsplit.py"))) + "\n"
    publish("unsplit", text, whole=counts == COUNTS)


if __name__ == "__main__":
    main()
