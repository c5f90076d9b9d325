"""Bytes alive around runs of steps, against counting them buffer by buffer."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from passfit.memory import ALIGNMENT
from passfit.memory.streaming.live_bytes import AliveBytes
from passfit.program import Program

from ...strategies import programs


@given(programs(), st.integers(1, 12))
def test_the_bytes_around_a_region_are_those_it_does_not_make_and_use_up(program: Program, longest: int) -> None:
    alive = AliveBytes(program, ALIGNMENT, longest)
    lives = list(zip(alive.sizes, alive.births, alive.deaths))
    for first in range(alive.count):
        for end in reversed(range(first + 1, min(first + longest, alive.count) + 1)):
            before = sum(size for size, birth, death in lives if birth < first < death)
            after = sum(size for size, birth, death in lives if first <= birth < end < death)
            assert alive.bytes_around(first, end) == before + after


@given(programs(), st.integers(1, 12))
def test_a_result_replaces_at_most_the_largest_operand_that_dies(program: Program, longest: int) -> None:
    alive = AliveBytes(program, ALIGNMENT, longest)
    for first in range(alive.count):
        for end in reversed(range(first + 1, min(first + longest, alive.count) + 1)):
            steps = list(enumerate(program.steps))[first:end]
            dying = [
                b
                for n, step in steps
                for b in program.buffers_of(step.reads)
                if alive.deaths[b] == n + 1 and alive.births[b] < first
            ]
            written = [b for _, step in steps for b in program.buffers_of(step.writes)]
            largest = (max((alive.sizes[b] for b in buffers), default=0) for buffers in (dying, written))
            assert alive.bounds_around(first, end)[1] == min(largest)
