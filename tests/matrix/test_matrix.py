"""Each cell of the matrix of files is verified, or ONNX Runtime does not run its file either.

`benchmarks/file_matrix.py` runs all cells; here are pairs of values, of the operator sets that changed most.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from passfit.targets import how_to_run

from ..nodes.building import HOST
from .cells import SETS, Cell, covering, outcome, sign, whole
from .networks import NETWORKS, NUMBERS

#: oldest and newest, and those that moved attributes to inputs, or brought dtypes
CHANGES = (7, 9, 11, 13, 18, 21, 23, SETS[-1])
CELLS = covering(CHANGES)


@pytest.mark.slow
@pytest.mark.tvm
@pytest.mark.skipif(not how_to_run(HOST).native, reason="the host cannot run x86-64-v3")
@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: "-".join(map(str, vars(cell).values())))
def test_a_file_is_verified_or_refused_as_by_onnx_runtime(cell: Cell) -> None:
    said = outcome(cell)
    assert sign(said) in "●○c–", said


def test_every_operator_set_has_every_kind_of_numbers_from_its_first_on() -> None:
    cells = {(each.network, each.numbers, each.opset) for each in whole()}
    assert cells == {
        (name, numbers, opset)
        for name in NETWORKS
        for numbers, since in NUMBERS.items()
        for opset in SETS
        if opset >= since
    }


def test_the_table_of_all_cells_has_no_fault() -> None:
    text = (Path(__file__).parents[2] / "benchmarks" / "results" / "file_matrix.md").read_text(encoding="utf-8")
    rows = [
        line.strip("| ").split(" | ")
        for line in text.splitlines()
        if line.startswith("| ") and line.count("|") == len(SETS) + 2
    ]
    rows = [row for row in rows if row[0] in NUMBERS]
    assert [row[0] for row in rows] == [*NUMBERS] * len(NETWORKS)
    for name, *signs in rows:
        assert set(signs) <= set("●○c–·"), (name, signs)
        assert [sign != "·" for sign in signs] == [opset >= NUMBERS[name] for opset in SETS]
