"""`rematerialise`: run steps again for late readers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...errors import PlanError, SequenceError
from ...memory.streaming.rematerialise import Repeat, repeat_steps
from ..base import Level, ProgramPass
from .in_body import program_at, rearrange_at, step_numbers

if TYPE_CHECKING:
    from ...program import Program


@dataclass(frozen=True)
class Rematerialise(ProgramPass):
    """Run `steps` again just before step `before`, for it and all later readers.

    `steps` are numbers joined by `+`: `3.0+3.1` are of the body of loop 3, whose number is left out of `before`. With `move=1`, those whose results nobody reads before that run there only.
    """

    name = "rematerialise"
    summary = "run kernels again for late readers instead of keeping their results"
    levels = frozenset({Level.LOWERED})

    steps: str
    before: int
    move: int = 0

    def __post_init__(self) -> None:
        step_numbers(self.steps, "+")

    @property
    def repeat(self) -> Repeat:
        return Repeat(tuple(sorted(step_numbers(self.steps, "+").numbers)), self.before, bool(self.move))

    def rearrange(self, program: Program) -> Program:
        above = step_numbers(self.steps, "+").above
        program_at(program, above, self.spec)
        try:
            return rearrange_at(program, above, lambda body: repeat_steps(body, self.repeat))
        except PlanError as error:
            raise SequenceError(f"The pass '{self.spec}' does not fit: {error}", "Search again.") from error
