"""Small programs as `replay` would schedule them, with a tuning."""

from __future__ import annotations

from dataclasses import replace

from passfit.kernels.lower.lower import Lowered
from passfit.kernels.schedule.tuned import Request, Tuning
from passfit.passes.sequence.apply import arranged
from passfit.passes.sequence.catalogue import parse_spec
from passfit.tuning.recorder import Census


def arranged_with(program: Lowered, tuning: Tuning, passes: tuple[str, ...] = ("share", "order")) -> tuple[Lowered, int]:
    """The program scheduled with `tuning`, and its workspace in bytes."""
    return arranged(replace(program, tuning=tuning), [parse_spec(spec) for spec in passes])


def requests_of(program: Lowered, passes: tuple[str, ...] = ("share", "order")) -> list[Request]:
    census = Census()
    arranged_with(program, census, passes)
    return list(census.requests.values())
