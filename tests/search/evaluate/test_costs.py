"""Operands of a loop that runs again are near if all of its tensors fit the second cache."""

from __future__ import annotations

from dataclasses import replace

import pytest

pytest.importorskip("tvm")

from passfit.program import Loop
from passfit.tir.counts.operation_counts import near_calls

from ...memory.loops import recurrence

pytestmark = pytest.mark.tvm


def test_calls_are_near_in_a_loop_that_fits_the_cache_and_runs_again() -> None:
    program = recurrence(trips=5)
    (loop,) = (step for step in program.steps if isinstance(step, Loop))
    size = sum(tensor.nbytes for tensor in loop.body.tensors)
    inside = sum(1 for _ in program.calls_of(loop))
    others = sum(1 for _ in program.calls()) - inside
    assert list(near_calls(program, size)).count(True) == inside > 0
    assert list(near_calls(program, size)).count(False) == others
    once = replace(program, steps=tuple(replace(step, trips=1) if step is loop else step for step in program.steps))
    assert not any(near_calls(program, size - 1)) and not any(near_calls(once, size))
