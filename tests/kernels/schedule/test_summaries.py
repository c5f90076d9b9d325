"""Check that summaries suffice for a plan, and that no process repeats another's work."""

import os
import re
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

pytest.importorskip("tvm")

from tvm import relax

from passfit.kernels.lower.schedule_program import figures_of_schedules, schedule_program, summarise_schedules
from passfit.kernels.schedule import candidates, summaries
from passfit.kernels.schedule.candidates import schedules
from passfit.kernels.schedule.shared_log import SharedLog
from passfit.kernels.schedule.summaries import ScheduleSummaries
from passfit.kernels.weights import repack as repack_module
from passfit.kernels.weights.repack import Repack
from passfit.kernels.weights.repack_sums import RepackSums
from passfit.support.result_store import ResultStore
from passfit.targets import Machine, get_target
from passfit.tir.structural_key import structural_key
from passfit.tir.workspace import workspace_bytes

from ..programs import lowered, weight

pytestmark = pytest.mark.tvm
#: machines of one thread
MACHINES = [get_target(name).machine for name in ("x86-64", "rpi4", "beaglebone", "visionfive2")]


def _network(x):
    hidden = relax.op.nn.relu(relax.op.nn.conv2d(x, weight(16, 3, 3, 3), padding=1, strides=2))
    pooled = relax.op.nn.max_pool2d(hidden, (2, 2), (2, 2))
    joined = relax.op.concat([pooled, relax.op.exp(pooled)], axis=1)
    return relax.op.nn.softmax(relax.op.matmul(relax.op.reshape(joined, (1, 32 * 9)), weight(32 * 9, 10)))


@pytest.mark.parametrize("passes", [("legalize",), ("legalize", "fold-constant", "fuse-operators")])
def test_what_is_planned_is_what_is_scheduled(passes):
    program = lowered([(1, 3, 12, 12)], _network, passes)
    scheduled, workspace = schedule_program(program)
    summarised, same = summarise_schedules(program, ScheduleSummaries())
    assert same == workspace
    assert [(s.kernel, s.in_place, s.copies) for s in summarised.program.steps] == [
        (s.kernel, s.in_place, s.copies) for s in scheduled.program.steps
    ]


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("passes", [("legalize",), ("legalize", "fold-constant", "fuse-operators")])
def test_figures_are_those_of_the_kernels_that_are_scheduled(passes, machine):
    program = replace(lowered([(1, 3, 12, 12)], _network, passes), machine=machine)
    scheduled, _ = schedule_program(program)
    summaries = ScheduleSummaries()
    planned, _ = summarise_schedules(program, summaries)
    found = figures_of_schedules(planned, summaries, "key", structural_key)
    assert found == {name: structural_key(kernel) for name, kernel in scheduled.kernels.items()}
    again = figures_of_schedules(planned, summaries, "key", lambda kernel: pytest.fail("computed again"))
    assert again == found


@pytest.fixture(autouse=True)
def no_store(monkeypatch):
    monkeypatch.setattr(summaries, "shared_store", lambda: ResultStore(None))


def test_a_later_search_finds_them_in_the_store(monkeypatch, tmp_path):
    """Workspaces of kernels as TVM makes them are the same for every machine; schedules are not."""
    monkeypatch.setattr(summaries, "shared_store", lambda: ResultStore(tmp_path / "store.jsonl"))
    program = lowered([(1, 3, 12, 12)], _network)
    made = summarise_schedules(program, ScheduleSummaries())
    monkeypatch.setattr(summaries, "schedules", lambda *asked: pytest.fail("scheduled again"))
    found = summarise_schedules(program, ScheduleSummaries())
    assert (found[0].program, found[1]) == (made[0].program, made[1])
    scalar = replace(program, machine=Machine(lanes=1))
    with pytest.raises(pytest.fail.Exception):
        summarise_schedules(scalar, ScheduleSummaries())
    monkeypatch.setattr(summaries, "schedules", schedules)
    monkeypatch.setattr(candidates, "workspace_bytes", partial(_only_scheduled, made=program.kernels))
    stored = summarise_schedules(scalar, ScheduleSummaries())
    monkeypatch.undo()
    monkeypatch.setattr(summaries, "shared_store", lambda: ResultStore(None))
    fresh = summarise_schedules(scalar, ScheduleSummaries())
    assert (stored[0].program, stored[1]) == (fresh[0].program, fresh[1])


def _only_scheduled(kernel, threads=1, *, made):
    assert not any(kernel.same_as(each) for each in made.values()), "measured again as TVM made it"
    return workspace_bytes(kernel, threads)


def test_a_process_tells_the_others(monkeypatch):
    program = lowered([(1, 3, 12, 12)], _network)
    shared = SharedLog()
    child = os.fork()
    if child == 0:
        summarise_schedules(program, ScheduleSummaries(shared))
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    told = ScheduleSummaries(shared)
    monkeypatch.setattr(summaries, "schedules", lambda *asked: pytest.fail("scheduled again"))
    found, workspace = summarise_schedules(program, told)
    told.end()
    assert summarise_schedules(program, told)[0].program == found.program  # known summaries stay
    monkeypatch.undo()
    assert (found.program, workspace) == (
        summarise_schedules(program, ScheduleSummaries())[0].program,
        summarise_schedules(program, ScheduleSummaries())[1],
    )


def test_lines_of_all_are_seen_once_by_each():
    lines = SharedLog()
    lines.append("before")
    child = os.fork()
    if child == 0:
        seen = lines.new()
        lines.append("child")
        os._exit(0 if seen == ["before"] else 1)
    assert os.waitpid(child, 0)[1] == 0
    lines.append("x" * 100_000)
    assert lines.new() == ["before", "child", "x" * 100_000]
    assert lines.new() == []
    lines.close()


def test_kernels_of_one_hash_are_told_apart():
    """Key a slice at (0, 64) and one at (1, 0): their offsets differ and shapes do not."""
    machine, found = get_target("x86-64").machine, []
    for row, column in ((0, 64), (1, 0)):
        begin, end = [row, column], [row + 1, column + 1]
        cut = partial(relax.op.strided_slice, axes=[0, 1], begin=begin, end=end)
        program = lowered([(2, 128)], cut, ("legalize",))
        (kernel,) = program.kernels.values()
        found.append(structural_key(kernel, [], machine))
    assert found[0] != found[1]


@pytest.mark.parametrize("passes", [("legalize",), ("legalize", "fuse-operators")])
def test_kernels_without_sums_have_one_schedule_on_all_machines(passes):
    def network(x):
        rows = relax.op.permute_dims(relax.op.concat([relax.op.exp(x), x], axis=1), [0, 2, 1])
        return relax.op.nn.relu(relax.op.reshape(rows, (1, 8 * 12)))

    program = lowered([(1, 6, 8)], network, passes)
    assert not any(map(candidates.reads_machine, program.kernels.values()))
    found = [summarise_schedules(replace(program, machine=each), ScheduleSummaries()) for each in MACHINES]
    assert all((each.program, needed) == (found[0][0].program, found[0][1]) for each, needed in found)


@pytest.mark.parametrize(
    "repack",
    [
        Repack(0, 1, 4, inner=8),
        RepackSums(1, 0, 8, order="r k/4 f k%4", run=(1, 2), extents=(8, 3, 4), group=4, zero=3),
    ],
)  # fmt: skip
def test_a_summary_of_rows_keeps_layouts_of_every_kind(repack, monkeypatch):
    monkeypatch.setattr(summaries, "row_schedule", lambda *_: candidates.Schedule(None, 64, (repack,)))
    program = lowered([(1, 3, 12, 12)], _network, ("legalize",))
    (kernel, *_) = program.kernels.values()
    for known in (ScheduleSummaries(), ScheduleSummaries()):  # the second reads what the first has stored
        assert known.of_rows(kernel, frozenset({len(repr(repack))}), MACHINES[0], continues=False).repacks == (repack,)


def test_every_kind_of_layout_is_known():
    folder = Path(repack_module.__file__).parent
    written = {
        name for file in folder.glob("*.py") for name in re.findall(r"^class (Repack\w*)", file.read_text(), re.M)
    }
    assert written == set(summaries._REPACKS)
