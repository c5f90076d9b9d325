"""Check MiniMalloc's CSV: it reads back as written, and a false solution is refused."""

import csv
from dataclasses import replace

import pytest
from hypothesis import given, settings

from passfit.errors import ConfigError
from passfit.memory import live_bytes, plan_arena, share
from passfit.memory.files.minimalloc_csv import read_minimalloc, write_minimalloc
from passfit.memory.files.plan_file import SavedPlan

from ... import strategies
from ...profiles import examples
from ..shared_programs import sharing_programs


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


@settings(max_examples=examples(60))
@given(sharing_programs())
def test_gaps_say_where_a_buffer_holds_nothing(tmp_path_factory, program):
    program = share(program)
    path = tmp_path_factory.mktemp("csv") / "buffers.csv"
    saved = SavedPlan(program, plan_arena(program), 64)
    write_minimalloc(saved, path)
    assert read_minimalloc(saved, path).plan == saved.plan
    alive = [0] * max(1, len(program.steps))
    for row in rows(path):
        held = dict.fromkeys(range(int(row["lower"]), int(row["upper"])), int(row["size"]))
        for gap in row.get("gaps", "").split():
            steps, _, window = gap.partition("@")
            low, high = map(int, (window or "0:0").split(":"))
            assert high - low < int(row["size"])
            held.update(dict.fromkeys(range(*map(int, steps.split("-"))), high - low))
        assert set(held) == set(range(int(row["lower"]), int(row["upper"])))
        for step, nbytes in held.items():
            alive[step] += nbytes
    # what lies between two parts is not a gap to MiniMalloc
    assert max(alive) >= saved.plan.bound
    assert all(one >= other for one, other in zip(alive, live_bytes(program, 64), strict=True))


def test_the_part_of_a_concatenation_that_is_not_there_yet_is_a_gap(tmp_path):
    program = strategies.two_parts()
    write_minimalloc(SavedPlan(program, plan_arena(program), 64), tmp_path / "buffers.csv")
    assert [row["gaps"] for row in rows(tmp_path / "buffers.csv")] == ["", "0-1@0:64", ""]


def test_overlaps_unknown_buffers_and_other_files_are_refused(tmp_path):
    program = strategies.chain(64, 128, 64)
    saved = SavedPlan(program, plan_arena(program), 64)
    path = tmp_path / "buffers.csv"
    write_minimalloc(saved, path)
    everything = rows(path)
    _write(path, [row | {"offset": 0} for row in everything])
    with pytest.raises(ConfigError, match="not a plan of this program"):
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
