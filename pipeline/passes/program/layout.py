"""`layout`: store results channels-last, a layout some kernels read and write faster than planes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...errors import SequenceError
from ..base import LoweredPass

if TYPE_CHECKING:
    from ...kernels.lower.lower import Lowered


@dataclass(frozen=True)
class Layout(LoweredPass):
    """Store the results of `steps` with axis 1 last.

    `steps` are numbers joined by `+`. Their producers and consumers write and read that layout, so no kernel is added
    to convert it; see kernels.rewrite.channels_last. `program`, if given, is the digest of the only program accepted.
    """

    name = "layout"
    summary = "store results channels-last: pixel by pixel instead of plane by plane"
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

    def apply(self, lowered: Lowered) -> Lowered:
        from ...kernels.rewrite.channels_last import channels_last, digest_of

        if self.program and self.program != digest_of(lowered.program):
            raise SequenceError(
                f"The pass '{self.spec[:80]}' names steps of another program.", "Run `passfit tune` again."
            )
        return channels_last(lowered, self.numbers)
