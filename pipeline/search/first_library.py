"""Build a library of the best sequence so far, in its own process, during a long search.

    search ─── SECONDS ─► fork ───────────────► goes on ─────────────────────► the library found at the end
                            └─► build, verify ─► library in the folder of results, replaced by the later one

So a search that is interrupted leaves a library that is verified. The search itself does not depend on it. That of a large
model waits until the reference is done: both hold its weights.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING

from ..support.background import BackgroundResults, background

if TYPE_CHECKING:
    from ..passes.sequence.sequence import Sequence as PassSequence

#: seconds since the start of a compilation: most are built, run and compared within as many again
SECONDS = 30.0


class FirstLibrary:
    """Hold the process that builds the first library; `note` tells what is built already, in words."""

    def __init__(
        self,
        build: Callable[[PassSequence], str],
        processes: ExitStack,
        started: float,
        may_start: Callable[[], bool],
    ):
        self._build, self._processes, self._started, self._may_start = build, processes, started, may_start
        self._results: BackgroundResults | None = None
        self.note = ""

    def offer(self, sequence: PassSequence) -> None:
        """Build the library of `sequence` if it is time for the first one."""
        if self._results is None:
            if time.monotonic() >= self._started + SECONDS and self._may_start():
                self._results = self._processes.enter_context(background(partial(self._build, sequence), nice=0))
        elif not self.note and self._results.ready():
            self.note = self._results.of(0) or ""


@contextmanager
def first_library(
    build: Callable[[PassSequence], str], started: float, may_start: Callable[[], bool] = lambda: True
) -> Iterator[FirstLibrary]:
    """Yield the first library of a compilation that `started` at that monotonic time; its process ends with the block.

    `build` delivers the library of a sequence, and returns what to tell the user, or an empty string. It waits for `may_start`.
    """
    with ExitStack() as processes:
        yield FirstLibrary(build, processes, started, may_start)
