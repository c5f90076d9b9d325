"""Run thousands of mutated files; write results/bad_input.md, the counts by kind of file and verdict.

    .venv/bin/python benchmarks/bad_input.py                      10,000 models, 600 files of each other kind
    .venv/bin/python benchmarks/bad_input.py --models 200 --files 20 --seed 7    so many, from that seed; nothing is written

A case is its kind and seed: see tests/faults/bad_input.py. Outcomes are kept by commit, machine and versions: an interrupted run goes on.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from head import begin, publish
from tables import plain

sys.path.append(str(Path(__file__).parents[1]))
from tests.conftest import ModelRepo
from tests.faults.bad_input import FINE, KINDS, fill

ROOT = Path(__file__).parents[1]
#: cases of one server of forks; mutated models, and files of each other kind
BATCH, MODELS, FILES = 100, 10_000, 600
#: characters of what is said, in a table
CELL = 220
Row = dict[str, Any]


def make_repo(folder: Path) -> Path:
    """Write a repo with a model and its results."""
    folder.mkdir()
    repo = ModelRepo(folder, Path(sys.executable))
    repo.run("git", "init", "-q")
    repo.run(repo.python, "-m", "dvc", "init", "-q")
    return fill(repo)


def run(counts: dict[str, int], start: int, processes: int, file: Path) -> list[Row]:
    """Run the cases from a seed on that are not known yet; return all rows."""
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] if file.exists() else []
    known = {(row["kind"], row["seed"]) for row in rows}
    batches = [
        (kind, start + first, min(BATCH, count - first))
        for kind, count in counts.items()
        for first in range(0, count, BATCH)
    ]
    with tempfile.TemporaryDirectory() as folder, file.open("a", encoding="utf-8") as written:
        repo = make_repo(Path(folder) / "repo")

        def serve(batch: tuple[str, int, int]) -> list[Row]:
            kind, first, count = batch
            if all((kind, seed) in known for seed in range(first, first + count)):
                return []
            command = [sys.executable, "-m", "tests.faults.bad_input", str(repo), folder, str(first), str(count), kind]
            done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
            return [row for row in map(json.loads, done.stdout.splitlines()) if (kind, row["seed"]) not in known]

        with ThreadPoolExecutor(processes) as pool:
            for found in pool.map(serve, batches):
                rows += found
                written.writelines(f"{json.dumps(row)}\n" for row in found)
                written.flush()
                for row in found:
                    if row["verdict"] not in FINE:
                        print(row["kind"], row["seed"], row["verdict"], plain(row["said"], CELL), flush=True)
    asked = (row for row in rows if 0 <= row["seed"] - start < counts[row["kind"]])
    return sorted(asked, key=lambda row: row["seed"])


def page(rows: Sequence[Row], head: Sequence[str]) -> Iterator[str]:
    """Yield the lines of bad_input.md."""
    yield from ("# Bad input", "", *head, "")
    yield "Files with one to three mutations, of fields, words, lines or bytes, each read by a command of passfit in a process of its own"
    yield "with 60 s and 4 GiB of address space more. 0: done; 1: the gate says no; 2: refused in one line. In capitals: faults."
    verdicts = sorted({*FINE, *(row["verdict"] for row in rows)})
    yield from ("", f"| file | cases | {' | '.join(verdicts)} |", f"| --- |{' ---: |' * (len(verdicts) + 1)}")
    for kind in [*KINDS, ""]:
        count = Counter(row["verdict"] for row in rows if kind in ("", row["kind"]))
        cells = " | ".join(f"{count[verdict]:,}" if count[verdict] else "·" for verdict in verdicts)
        yield f"| {kind or '**all**'} | {count.total():,} | {cells} |"
    faults = [row for row in rows if row["verdict"] not in FINE]
    if faults:
        yield from ("", "## Faults", "", "| file | seed | verdict | said |", "| --- | ---: | --- | --- |")
        yield from (
            f"| {row['kind']} | {row['seed']} | {row['verdict']} | {plain(row['said'], CELL)} |" for row in faults
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=int, default=MODELS)
    parser.add_argument("--files", type=int, default=FILES)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--processes", type=int, default=2)
    arguments = parser.parse_args()
    origin, folder = begin("bad_input")
    counts = {kind: arguments.models if kind == "model" else arguments.files for kind in KINDS}
    rows = run(counts, arguments.seed, arguments.processes, folder / "cases.jsonl")
    text = "\n".join(page(rows, origin.lines(".venv/bin/python benchmarks/bad_input.py"))) + "\n"
    publish("bad_input", text, whole=(arguments.models, arguments.files, arguments.seed) == (MODELS, FILES, 0))
    return int(any(row["verdict"] not in FINE for row in rows))


if __name__ == "__main__":
    sys.exit(main())
