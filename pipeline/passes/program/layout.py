"""`layout`: results whose channels lie last, pixel by pixel, which some kernels read and write faster than planes."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..base import Level, Pass


@dataclass(frozen=True)
class Layout(Pass):
    """The results of `steps`, numbers joined by `+`, lie with axis 1 as the last one; the steps that make and read them
    do so in that layout, so that none is there for the change alone. See kernels.rewrite.channels_last.

    With `program`, they are steps of the program of that digest, and of no other.
    """

    name = "layout"
    summary = "lays results out with channels last: pixel by pixel instead of plane by plane"
    levels = frozenset({Level.LOWERED})

    steps: str
    program: str = ""

    def __post_init__(self) -> None:
        if not re.fullmatch(r"\d+(\+\d+)*", self.steps):
            raise ValueError(f"steps is '{self.steps}', not numbers joined by +")
        if not re.fullmatch(r"[0-9a-f]*", self.program):
            raise ValueError(f"program is '{self.program}', not the digits of a digest")

    @property
    def numbers(self) -> frozenset[int]:
        return frozenset(int(number) for number in self.steps.split("+"))
