"""Apply passes to bodies of loops, on programs without kernels."""

from __future__ import annotations

from dataclasses import replace

import pytest

from passfit.errors import SequenceError
from passfit.memory import ALIGNMENT, plan_arena, validate_plan
from passfit.passes.program.rematerialise import Rematerialise
from passfit.passes.sequence.catalogue import parse_spec
from passfit.program import Loop, Program, Step, Tensor

from ...memory.loops import nested, planned, recurrence


def _rearranged(program: Program, spec: str) -> Program:
    found = parse_spec(spec)
    assert isinstance(found, Rematerialise)
    return found.rearrange(program)


def _read_late(program: Program) -> Program:
    """Let the last step of a recurrence read what the first of its own makes too."""
    (loop,) = program.steps
    assert isinstance(loop, Loop)
    copy, f, g, k = loop.body.steps
    spare = len(loop.body.tensors)
    body = replace(
        loop.body, tensors=(*loop.body.tensors, Tensor((64,), "uint8", buffer=5)), buffers=(*loop.body.buffers, replace(loop.body.buffers[3], name="z")),
        steps=(copy, Step("z", (0,), (spare,)), f, g, replace(k, reads=(4, spare))),
    )  # fmt: skip
    return replace(program, steps=(replace(loop, body=body),))


def test_a_step_of_a_body_runs_again():
    program = planned(_rearranged(_read_late(recurrence()), "rematerialise{steps=0.1,before=4}"))
    validate_plan(program, plan_arena(program), ALIGNMENT)
    assert [step.kernel for step in program.steps[0].body.steps].count("z") == 2


@pytest.mark.parametrize("step", [0, 2], ids=["in the first trip alone", "of a state that is overwritten"])
def test_a_step_that_would_do_something_else_does_not_run_again(step: int):
    with pytest.raises(SequenceError, match="does not fit"):
        _rearranged(_read_late(recurrence()), f"rematerialise{{steps=0.{step},before=4}}")


def test_a_path_that_leads_to_no_loop_is_refused():
    with pytest.raises(SequenceError, match="step 0 of 'body' is not a loop"):
        _rearranged(nested(), "rematerialise{steps=0.0.1,before=2}")
