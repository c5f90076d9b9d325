"""Schedule small programs like `replay`, with a tuning."""

from __future__ import annotations

from dataclasses import replace

from passfit.kernels.lower.lower import Lowered
from passfit.kernels.schedule.tuned import ScheduleRequest, Tuning
from passfit.passes.sequence.apply import apply_program_passes
from passfit.passes.sequence.catalogue import parse_spec
from passfit.tuning.recorder import ScheduleRecorder


def arranged_with(
    program: Lowered, tuning: Tuning, passes: tuple[str, ...] = ("share", "order")
) -> tuple[Lowered, int]:
    """Schedule a program with `tuning`; return it with its workspace in bytes."""
    return apply_program_passes(replace(program, tuning=tuning), [parse_spec(spec) for spec in passes])


def requests_of(program: Lowered, passes: tuple[str, ...] = ("share", "order")) -> list[ScheduleRequest]:
    census = ScheduleRecorder()
    arranged_with(program, census, passes)
    return list(census.requests.values())
