"""Plan loops of rows: rings live through all trips, the values of a trip share memory, and each is checked by its guard."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from passfit.errors import PlanError
from passfit.memory import ALIGNMENT, plan_arena, validate_plan
from passfit.memory.liveness import aligned
from passfit.program import Buffer, Guard, Loop, Port, Program, Step, Tensor, Window
from passfit.program.check import first_problem
from passfit.program.serial import program_from_json, program_to_json

from ..loops import planned


@st.composite
def guards(draw: st.DrawFn, trips: int) -> Guard:
    """Guards of calls that take their number, within so many trips."""
    period, offset = draw(st.integers(1, 4)), draw(st.integers(0, trips - 1))
    return Guard(period, offset, draw(st.integers(1, (trips - 1 - offset) // period + 1)), numbered=True)


@st.composite
def loops_of_rows(draw: st.DrawFn) -> Program:
    """Loops of a chain of calls; each computes rows into a ring, or a value of the trip that a copy takes to a ring."""
    trips, count = draw(st.integers(1, 9)), draw(st.integers(1, 5))
    x, y = 4096, 2048
    tensors = [Tensor((x,), "uint8", 0), Tensor((y,), "uint8", 1)]
    buffers = [Buffer("x", x), Buffer("y", y)]
    steps: list[Step] = []
    rings: list[int] = []

    def added(name: str, nbytes: int) -> int:
        tensors.append(Tensor((nbytes,), "uint8", len(buffers)))
        buffers.append(Buffer(name, nbytes))
        return len(tensors) - 1

    read: tuple[int, ...] = (0,)
    for number in range(count):
        if number == count - 1:
            written = 1
        elif draw(st.booleans()):
            rings.append(written := added(f"ring{number}", draw(st.integers(1, 300))))
        else:
            written = added(f"value{number}", draw(st.integers(1, 300)))
        steps.append(Step(f"k{number}", read, (written,), guard=draw(guards(trips))))
        if written != 1 and written not in rings and draw(st.booleans()):
            rings.append(kept := added(f"kept{number}", draw(st.integers(1, 300))))
            steps.append(Step(f"keep{number}", (written,), (kept,), guard=draw(guards(trips))))
            read = written, kept
        else:
            read = (written,)
    held = tuple(Port(buffers[tensors[each].buffer].name, each) for each in rings)
    body = Program(
        "body", tuple(steps), tuple(tensors), tuple(buffers), (), (Port("x", 0), *held), (Port("y", 1), *held)
    )
    loop = Loop("rows", (0,), (1,), trips=trips, body=body, windows=(Window(0, 0), Window(1, 1)))
    return Program("rows", (loop,), tuple(tensors[:2]), tuple(buffers[:2]), (), (Port("x", 0),), (Port("y", 1),))


@given(loops_of_rows())
def test_a_loop_of_rows_has_a_valid_plan(program: Program):
    assert first_problem(program) is None
    around = planned(program)
    assert first_problem(around) is None
    plan = plan_arena(around)
    validate_plan(around, plan, ALIGNMENT)
    (loop,) = around.steps
    assert isinstance(loop, Loop) and loop.is_numbered and loop.body.steps == program.steps[0].body.steps
    rings = sorted(loop.rings)
    own = [loop.workspace_of(ring) for ring in rings]
    assert len(set(own)) == len(rings) and [around.tensors[each].nbytes for each in own] == [
        loop.body.buffers[each].nbytes for each in rings
    ]
    values = [each for n, each in enumerate(loop.body.buffers) if n not in loop.outside | loop.rings]
    assert loop.workspaces == len(rings) + bool(values)
    if values:
        most = around.tensors[loop.writes[-1]].nbytes
        assert max(each.nbytes for each in values) <= most <= sum(aligned(each.nbytes) for each in values)


@given(loops_of_rows())
def test_a_planned_loop_of_rows_survives_json(program: Program):
    around = planned(program)
    assert program_from_json(json.loads(json.dumps(program_to_json(around)))) == around


@given(loops_of_rows())
def test_calls_run_as_often_as_their_guards_say(program: Program):
    (loop,) = program.steps
    assert isinstance(loop, Loop)
    for call in program.calls():
        assert call.runs == sum(map(call.step.runs_in, range(loop.trips))) == call.step.guard.groups


@given(loops_of_rows(), st.data())
def test_a_buffer_in_a_ring_of_another_is_refused(program: Program, data: st.DataObject):
    around = planned(program)
    (loop,) = around.steps
    assert isinstance(loop, Loop)
    inside = [
        n
        for n, each in enumerate(loop.body.buffers)
        if n not in loop.outside and any(n == loop.body.tensors[t].buffer for s in loop.body.steps for t in s.writes)
    ]
    rings = sorted(set(inside) & loop.rings)
    if len(inside) < 2 or not rings:
        return
    ring = data.draw(st.sampled_from(rings))
    other = data.draw(st.sampled_from([each for each in inside if each != ring]))
    pieces = tuple(loop.pieces[ring] if n == other else each for n, each in enumerate(loop.pieces))
    offsets = tuple(loop.offsets[ring] if n == other else each for n, each in enumerate(loop.offsets))
    wrong = replace(around, steps=(replace(loop, pieces=pieces, offsets=offsets),))
    with pytest.raises(PlanError, match="share memory|outside the workspace"):
        validate_plan(wrong, plan_arena(wrong), ALIGNMENT)


@pytest.mark.parametrize("guard", [Guard(0), Guard(groups=0), Guard(offset=-1), Guard(offset=3), Guard(2, 1, 2)])
def test_guards_are_within_the_trips(guard: Guard):
    body = Program(
        "body",
        (Step("k", (0,), (1,), guard=guard),),
        (Tensor((8,), "uint8", 0), Tensor((8,), "uint8", 1)),
        (Buffer("x", 8), Buffer("y", 8)),
        (),
        (Port("x", 0),),
        (Port("y", 1),),
    )
    loop = Loop("loop", (0,), (1,), trips=3, body=body, windows=(Window(0, 0), Window(1, 1)))
    program = replace(body, name="around", steps=(loop,))
    assert "'k' runs" in (first_problem(program) or "")
