"""Import, compile and verify every cell of the matrix of files (tests/matrix); write results/file_matrix.md.

    .venv/bin/python benchmarks/file_matrix.py                     every cell
    .venv/bin/python benchmarks/file_matrix.py --only recurrent    cells of that network or kind of numbers; nothing is written

A cell is compiled without a search. Results are kept by commit, machine and versions: an interrupted run goes on.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from head import begin, publish
from tables import plain

sys.path.append(str(Path(__file__).parents[1]))
from tests.matrix.cells import SETS, Cell, outcome, sign, whole
from tests.matrix.networks import NETWORKS, NUMBERS

#: characters of a reason in a table
CELL = 220


def outcome_of(cell: Cell) -> tuple[Cell, str]:
    try:
        return cell, outcome(cell)
    except Exception as error:  # a bug is an outcome
        return cell, f"CRASH: {type(error).__name__}: {error}"


def run(cells: Sequence[Cell], processes: int, folder: Path) -> dict[Cell, str]:
    """Run the cells that are not known yet; return all outcomes."""
    file = folder / "cells.jsonl"
    rows = map(json.loads, file.read_text(encoding="utf-8").splitlines()) if file.exists() else ()
    found = {Cell(*cell): said for cell, said in rows}
    # not a Pool, whose processes may have no children: verification has some
    with file.open("a", encoding="utf-8") as written, ProcessPoolExecutor(processes) as pool:
        for cell, said in pool.map(outcome_of, [each for each in cells if each not in found], chunksize=16):
            found[cell] = said
            written.write(json.dumps([list(vars(cell).values()), said]) + "\n")
            written.flush()
    return {cell: found[cell] for cell in cells}


def page(found: Mapping[Cell, str], head: Sequence[str]) -> Iterator[str]:
    """Yield the lines of file_matrix.md."""
    yield from ("# Matrix of files", "", *head, "")
    yield "Three small networks, in every kind of numbers and operator set; file versions and places of constants take turns, so that"
    yield "each meets each of the other values. ●: verified by ONNX Runtime on the file; ○: by ONNX's evaluator; c: ONNX Runtime does not"
    yield "run the file, and the library equals its canonical form; –: refused, and ONNX Runtime does not run the file either; ·: the set has"
    yield "no such numbers. Letters in capitals are faults."
    for network in NETWORKS:
        yield from (
            "",
            f"## {network.capitalize()}",
            "",
            f"| numbers | {' | '.join(map(str, SETS))} |",
            f"| --- |{' :---: |' * len(SETS)}",
        )
        for numbers in NUMBERS:
            row = {
                cell.opset: sign(said)
                for cell, said in found.items()
                if (cell.network, cell.numbers) == (network, numbers)
            }
            yield f"| {numbers} | {' | '.join(row.get(each, '·') for each in SETS)} |"
    others = {cell: said for cell, said in found.items() if sign(said) not in "●○"}
    if others:
        yield from (
            "",
            "## Not verified on the file",
            "",
            "| network | numbers | set | file version | constants | outcome |",
            "| --- | --- | ---: | ---: | --- | --- |",
        )
    for cell, said in others.items():
        yield f"| {' | '.join(map(str, vars(cell).values()))} | {plain(said, CELL)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="")
    parser.add_argument("--processes", type=int, default=2)
    arguments = parser.parse_args()
    origin, folder = begin("file_matrix")
    cells = [each for each in whole() if arguments.only in ("", each.network, each.numbers)]
    found = run(cells, arguments.processes, folder)
    text = "\n".join(page(found, origin.lines(".venv/bin/python benchmarks/file_matrix.py"))) + "\n"
    publish("file_matrix", text, whole=not arguments.only)


if __name__ == "__main__":
    main()
