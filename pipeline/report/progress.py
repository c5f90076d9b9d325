"""Show progress: a bar on a terminal, now and then a plain line elsewhere."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ..support.progress import Progress

#: seconds between two plain lines: a log of an hour stays readable
EVERY = 10.0
_FIRST = "importing"


@contextmanager
def console_progress() -> Iterator[Progress]:
    """Yield a callback of `support.progress.Progress`; bar and lines move even while nothing is reported."""
    from rich.console import Console

    console = Console(stderr=True)
    with _bar(console) if console.is_terminal else _lines() as shown:
        yield shown


def said(what: str, done: int, total: int, found: str) -> str:
    """Put a report of progress in words: `searching states: 120, least ram so far 165.0 KiB`."""
    amount = f"{done} of {total}" if total else str(done) if done else ""
    rest = ", ".join(filter(None, (amount, found)))
    return f"{what}: {rest}" if rest else what


class PlainLines:
    """Write the last report and its time as a line, once in EVERY seconds."""

    def __init__(self, write: Callable[[str], object], clock: Callable[[], float] = time.monotonic):
        self._write, self._clock = write, clock
        self._started = self._last = clock()
        self._report = _FIRST
        self._lock = threading.Lock()

    def __call__(self, what: str, done: int = 0, total: int = 0, found: str = "") -> None:
        self._report = said(what, done, total, found)
        self.tick()

    def tick(self) -> None:
        """Write a line if it is time for one."""
        with self._lock:
            now = self._clock()
            if now - self._last < EVERY:
                return
            self._last = now
        self._write(f"{self._report} ({now - self._started:.0f} s)\n")


@contextmanager
def _lines() -> Iterator[Progress]:
    def write(line: str) -> None:
        sys.stderr.write(line)
        sys.stderr.flush()

    lines, over = PlainLines(write), threading.Event()

    def beat() -> None:
        while not over.wait(1.0):
            lines.tick()

    # LLVM and the C compiler report nothing for minutes, and leave Python free meanwhile
    beating = threading.Thread(target=beat, name="progress", daemon=True)
    beating.start()
    try:
        yield lines
    finally:
        over.set()
        beating.join()


@contextmanager
def _bar(console) -> Iterator[Progress]:
    from rich import progress as rich

    columns = (rich.SpinnerColumn(), rich.TextColumn("{task.description}"), rich.BarColumn(), rich.TimeElapsedColumn())
    # what is printed meanwhile stands above the bar, unless it goes to a file
    with rich.Progress(*columns, console=console, transient=True, redirect_stdout=sys.stdout.isatty()) as bar:
        task = bar.add_task(_FIRST, total=None)

        def show(what: str, done: int = 0, total: int = 0, found: str = "") -> None:
            bar.update(task, description=said(what, done, total, found), completed=done, total=total or None)

        yield show
