"""`rematerialise`: run steps again for late readers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...errors import PlanError, SequenceError
from ...memory.streaming.rematerialise import Repeat, with_repeats
from ..base import Level, ProgramPass

if TYPE_CHECKING:
    from ...program import Program


@dataclass(frozen=True)
class Rematerialise(ProgramPass):
    """Run `steps` again just before step `before`, for it and all later readers.

    `steps` are numbers joined by `+`. With `move=1`, those whose results nobody reads before that run there only.
    """

    name = "rematerialise"
    summary = "run kernels again for late readers instead of keeping their results"
    levels = frozenset({Level.LOWERED})

    steps: str
    before: int
    move: int = 0

    def __post_init__(self) -> None:
        if not re.fullmatch(r"\d+(\+\d+)*", self.steps):
            raise ValueError(f"steps is '{self.steps}', not numbers joined by +")

    @property
    def repeat(self) -> Repeat:
        return Repeat(tuple(sorted(int(number) for number in self.steps.split("+"))), self.before, bool(self.move))

    def rearrange(self, program: Program) -> Program:
        try:
            return with_repeats(program, self.repeat)
        except PlanError as error:
            raise SequenceError(f"The pass '{self.spec}' does not fit: {error}", "Search again.") from error
