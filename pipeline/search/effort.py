"""Bound the work of a search by kernels handled, the same on every machine; a clock is only the net below.

seconds ──► kernels: RATE a second ──► steps of the search are left out once a part of them is used
        └─► NET × as many processor seconds, and START: the clock ends the search, and the result says so
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

#: processor seconds of a search: two minutes of two cores
SECONDS = 240.0
#: kernels handled in a processor second, as measured over whole searches: 220 to 430
RATE = 200.0
#: processor seconds after which the clock ends a search: relative to those asked for, and on top
NET, START = 2.0, 60.0
#: parts of the work after which a step is left out: other states; splits of other finalists, and the worth of passes; at
#: last what refines the winner, which gains most for its work
SEARCH, FINALISTS, WINNER = 0.5, 0.7, 0.95


@dataclass
class Effort:
    """Work done by a search, in kernels, within the allowance of `seconds`.

    `elsewhere` returns the processor seconds of other processes. `ended_by` is empty, `work`, or `clock`.
    """

    seconds: float = SECONDS
    elsewhere: Callable[[], float] = lambda: 0.0
    kernels: float = 0.0
    ended_by: str = ""
    _started: float = field(default_factory=time.process_time)

    def add(self, kernels: float) -> None:
        self.kernels += kernels

    def over(self, part: float) -> bool:
        """Return whether a part of the work allowed is done; note it as a step's end."""
        if time.process_time() - self._started + self.elsewhere() > START + NET * self.seconds:
            self.ended_by = "clock"
        elif self.kernels > part * RATE * self.seconds:
            self.ended_by = self.ended_by or "work"
        else:
            return False
        return True
