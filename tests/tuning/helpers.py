"""Small programs as `replay` would schedule them, with a tuning."""

from __future__ import annotations

from dataclasses import replace

from passfit.kernels.arranging import arranged
from passfit.kernels.lowering import Lowered
from passfit.kernels.tuning import Request, Tuning
from passfit.passes.registry import parse_spec
from passfit.tuning.census import Census


def arranged_with(program: Lowered, tuning: Tuning, passes: tuple[str, ...] = ("share", "order")) -> tuple[Lowered, int]:
    """The program scheduled with `tuning`, and its workspace in bytes."""
    return arranged(replace(program, tuning=tuning), [parse_spec(spec) for spec in passes])


def requests_of(program: Lowered, passes: tuple[str, ...] = ("share", "order")) -> list[Request]:
    census = Census()
    arranged_with(program, census, passes)
    return list(census.requests.values())
