"""Check one room within a minute: `make quick ROOM=kernels/rules` lints it and runs its tests, fast ones first.

Linters run beside pytest. Files run in the order of what they took before; pytest's cache keeps that for every run of the
suite. A room without such a record begins with its unmarked tests. What the time does not allow is said, and not green:

    quick: 312 of 1,204 tests of kernels/rules ran in 52 s, none failed; 892 are left
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Generator, Iterator
from itertools import groupby
from pathlib import Path

import pytest
from _pytest.tmpdir import tmppath_result_key

ROOT = Path(__file__).parents[1]
SECONDS = 50.0  # of a minute, which ends when pytest has said what failed
#: in pytest's cache: seconds by test, and seconds of processors by file, the longest first
_TAKEN, FILES = "passfit/seconds", "passfit/processor-seconds-by-file"
PROCESSOR = "processor seconds"
_GUESSES = {"slow": 20.0, "tvm": 2.0}
_GUESS = 0.1


def processor_seconds() -> float:
    """Return the processor time of this process and of those it waited for."""
    return sum(os.times()[:4])


class Durations:
    """Remember in pytest's cache what each test took, its fixtures too, and each file of the processors."""

    def __init__(self, config: pytest.Config):
        self._cache = getattr(config, "cache", None)  # none with -p no:cacheprovider
        self._known: dict[str, float] = self._cache.get(_TAKEN, {}) if self._cache else {}
        self._now: dict[str, float] = defaultdict(float)
        self._files: dict[str, float] = defaultdict(float)

    def of(self, item: pytest.Item) -> float:
        """Return the seconds of a test: measured, or guessed by its mark."""
        guess = next((each for mark, each in _GUESSES.items() if item.get_closest_marker(mark)), _GUESS)
        return self._known.get(item.nodeid, guess)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._now[report.nodeid] += report.duration
        if report.when == "teardown":
            self._files[report.nodeid.partition("::")[0]] += dict(report.user_properties).get(PROCESSOR, 0.0)

    def pytest_sessionfinish(self) -> None:
        if self._cache and self._now:
            self._cache.set(_TAKEN, self._known | {test: round(seconds, 3) for test, seconds in self._now.items()})
            files = self._cache.get(FILES, {}) | {file: round(seconds, 1) for file, seconds in self._files.items()}
            self._cache.set(FILES, dict(sorted(files.items(), key=lambda each: -each[1])))


class TimeLimit:
    """Run files in the order of seconds a test, and end the session in time, in the middle of a test if need be.

    `collected` tests are there, `ended` in time, and of these `passed` and `failed`: what an interrupt made fail is left.
    """

    def __init__(self, seconds: float):
        self.collected = self.ended = self.passed = self.failed = 0
        self._end = time.monotonic() + seconds
        self._in_test = False
        self._finished = threading.Event()

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        durations = Durations(config)
        files = [list(group) for _, group in groupby(items, lambda item: item.path)]
        files.sort(key=lambda file: sum(map(durations.of, file)) / len(file))
        items[:] = [item for file in files for item in file]
        self.collected = len(items)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self) -> Generator[None, object, object]:
        signal.signal(signal.SIGUSR1, self._interrupt)  # not SIGINT, which stays the user's
        threading.Thread(target=self._watch, daemon=True).start()
        try:
            return (yield)
        finally:
            self._finished.set()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        # the teardown of tmp_path reads this, which an interrupt of a later fixture keeps pytest from writing
        item.stash.setdefault(tmppath_result_key, {})
        self._in_test = True
        try:
            return (yield)
        finally:
            self._in_test = False

    def _watch(self) -> None:
        """Interrupt the main thread from the end on, each second again: a callback of C++ or a test may drop it."""
        wait = max(0.0, self._end - time.monotonic())
        while not self._finished.wait(wait):
            signal.pthread_kill(threading.main_thread().ident, signal.SIGUSR1)
            wait = 1.0

    def _interrupt(self, *_: object) -> None:
        if self._in_test:
            raise KeyboardInterrupt

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if time.monotonic() < self._end:
            self.passed += report.when == "call" and report.passed
            self.failed += report.failed
            self.ended += report.when == "teardown"


def rooms() -> Iterator[str]:
    """Yield the rooms and the folders below them that have tests."""
    for folder in sorted({file.parent for file in (ROOT / "tests").rglob("test_*.py")} - {ROOT / "tests"}):
        yield folder.relative_to(ROOT / "tests").as_posix()


def lints(room: str) -> list[list[str]]:
    """Return the commands that lint a room and its tests."""
    code = "stages" if room == "stages" else f"pipeline/{room}"
    product = [code] if (ROOT / code).is_dir() else []
    commands = [["ruff", "check", *product, f"tests/{room}"], ["ruff", "format", "--check", *product, f"tests/{room}"]]
    return commands + ([["mypy", *product]] if product else [])


def main() -> int:
    """Check the room of the command line; 0 if all that ran is well, 1 if not, 2 if there is no such room."""
    parser = argparse.ArgumentParser(prog="make quick", description=__doc__)
    parser.add_argument("room")
    parser.add_argument("--seconds", type=float, default=SECONDS)
    given = parser.parse_args()
    room, known = given.room.strip("/"), list(rooms())
    if not any(each == room or each.startswith(f"{room}/") for each in known):
        print(f"quick: {room!r} is not a room with tests; ROOM is one of {', '.join(known)}", file=sys.stderr)
        return 2
    started = time.monotonic()
    limit = TimeLimit(given.seconds)
    running = [
        subprocess.Popen([sys.executable, "-m", *each], cwd=ROOT, text=True, stdout=subprocess.PIPE)
        for each in lints(room)
    ]
    pytest.main(["-q", "--no-header", str(ROOT / "tests" / room)], plugins=[limit])
    faults = [said for each in running if (said := each.communicate()[0]) and each.returncode]
    print(*faults, sep="\n")
    left = limit.collected - limit.ended
    print(
        f"quick: {limit.ended:,} of {limit.collected:,} tests of {room} ran in {time.monotonic() - started:.0f} s, "
        f"{limit.failed or 'none'} failed; {left or 'none'} left" + (", lint failed" if faults else "")
    )
    return int(bool(limit.failed or faults or not limit.passed))


if __name__ == "__main__":
    sys.exit(main())
