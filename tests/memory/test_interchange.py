"""MiniMalloc's CSV: what is written is read back, and a solution that is none is refused."""

import csv
from dataclasses import replace

import pytest
from hypothesis import given

from passfit.errors import ConfigError
from passfit.memory import plan_arena
from passfit.memory.interchange import read_minimalloc, write_minimalloc
from passfit.memory.planfile import SavedPlan

from .. import strategies


def rows(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@given(strategies.programs())
def test_a_plan_survives_the_file(tmp_path_factory, program):
    path = tmp_path_factory.mktemp("csv") / "buffers.csv"
    saved = SavedPlan(program, plan_arena(program), 64)
    write_minimalloc(saved, path)
    assert read_minimalloc(saved, path).plan.arena <= saved.plan.arena
    for row in rows(path):
        assert int(row["lower"]) < int(row["upper"]) and int(row["size"]) % 64 == 0


@given(strategies.programs())
def test_a_looser_solution_is_a_plan_too_and_does_not_claim_to_be_proved(tmp_path_factory, program):
    path = tmp_path_factory.mktemp("csv") / "buffers.csv"
    plan = plan_arena(program)
    if plan.arena == 0:
        return
    higher = replace(plan, offsets=tuple(offset + 64 for offset in plan.offsets), arena=plan.arena + 64)
    write_minimalloc(SavedPlan(program, higher, 64), path)
    found = read_minimalloc(SavedPlan(program, plan, 64), path).plan
    assert found.arena == plan.arena + 64 and not (found.proved and plan.proved)


def test_overlaps_unknown_buffers_and_other_files_are_refused(tmp_path):
    program = strategies.chain(64, 128, 64)
    saved = SavedPlan(program, plan_arena(program), 64)
    path = tmp_path / "buffers.csv"
    write_minimalloc(saved, path)
    everything = rows(path)
    _write(path, [row | {"offset": 0} for row in everything])
    with pytest.raises(ConfigError, match="no plan of this program"):
        read_minimalloc(saved, path)
    _write(path, [everything[0] | {"id": 10**6}])
    with pytest.raises(ConfigError, match="no buffer 1000000"):
        read_minimalloc(saved, path)
    path.write_text("a,b\n1,2\n")
    with pytest.raises(ConfigError, match="not a solution"):
        read_minimalloc(saved, path)


def _write(path, found):
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, found[0].keys())
        writer.writeheader()
        writer.writerows(found)
