"""The search: down the list of kernels, the one that takes longest first, until the time is up.

First the rules' own parameters, which cost a fifth of a second each; then, in the time that is left, MetaSchedule.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from ..kernels.choices import choices, parse_choice, turned
from ..kernels.scheduling import Schedule
from ..kernels.tuning import Request, operands
from ..targets import Target
from .census import Census
from .database import RULES, Tuned
from .meta import by_meta_schedule, cannot
from .stand import Stand

#: a kernel with less of the time than this is left to the rules
_SHARE = 0.005
#: bytes of weights that caches are believed to keep from one run of a model to the next
_KEPT = 8 << 20
#: what a schedule has to be faster by to be taken: less is noise
_GAIN = 0.03

#: called with the seconds that are over
Progress = Callable[[float], None]


@dataclass
class _Kernel:
    """What is known of one kernel; times are in nanoseconds a call."""

    fingerprint: str
    request: Request
    calls: int
    before: float
    after: float
    choice: str = RULES
    tried: dict[str, int] = field(default_factory=dict)
    note: str = ""

    @property
    def weight(self) -> float:
        """Nanoseconds a run."""
        return self.calls * self.after


class Clock:
    """Seconds since it was made, of `seconds` that there are."""

    def __init__(self, seconds: float, progress: Progress):
        self.seconds, self._progress, self._started = seconds, progress, time.monotonic()

    @property
    def left(self) -> float:
        over = time.monotonic() - self._started
        self._progress(min(over, self.seconds))
        return self.seconds - over


def tune_kernels(
    census: Census, target: Target, clock: Clock, seed: int, trials: int, cold: bool = False
) -> list[Tuned]:
    """The kernels of a program, each with the best choice found for it: measured natively on `target`, which this
    machine must be, with `cold` caches or warm ones. `trials` are what MetaSchedule may measure for each.

    Ctrl-C ends the search as the end of the time does: what was found counts.
    """
    kernels: list[_Kernel] = []
    try:
        for kernel in _timed(census, target, seed, cold):
            kernels.append(kernel)
        total = sum(kernel.weight for kernel in kernels)
        kernels.sort(key=lambda kernel: (-kernel.weight, kernel.fingerprint))
        worth = [kernel for kernel in kernels if kernel.weight >= _SHARE * total]
        for kernel in worth:
            if clock.left <= 0:
                break
            _by_rules(kernel, Stand(kernel.request, target, seed, cold), clock)
        worth.sort(key=lambda kernel: (-kernel.weight, kernel.fingerprint))
        for number, kernel in enumerate(worth):
            rest = sum(other.weight for other in worth[number:])
            seconds = clock.left * kernel.weight / rest
            if not trials or seconds <= 0:
                break
            _by_traces(kernel, Stand(kernel.request, target, seed, cold), target, seconds, seed, trials)
    except KeyboardInterrupt:
        pass
    return [_tuned(kernel) for kernel in kernels]


def finds_cold_caches(weight_bytes: int) -> bool:
    """Whether the kernels of a model with such weights find them in memory at each run."""
    return weight_bytes > _KEPT


def within(kernels: list[Tuned], census: Census) -> list[Tuned]:
    """The same with all windows, which several to a kernel are compiled, left to the rules."""
    windows = {fingerprint for fingerprint, request in census.requests.items() if request.fixed_shapes}
    note = "faster, but together with others it needs more workspace"
    return [
        replace(each, choice=RULES, after_ns=each.before_ns, note=note)
        if each.fingerprint in windows and each.choice != RULES
        else each
        for each in kernels
    ]


def _timed(census: Census, target: Target, seed: int, cold: bool) -> Iterator[_Kernel]:
    """The kernels, timed as the rules schedule them."""
    for fingerprint, request in census.requests.items():
        taken = Stand(request, target, seed, cold).nanoseconds(request.rules)
        yield _Kernel(fingerprint, request, census.calls[fingerprint], taken, taken)


def _by_rules(kernel: _Kernel, stand: Stand, clock: Clock) -> None:
    request = kernel.request
    found: list[tuple[float, str, Schedule]] = []
    best = kernel.before

    def measure(spec: str) -> None:
        nonlocal best
        schedule = request.scheduled(spec)
        if schedule is None or not request.allows(schedule):
            return
        taken = stand.nanoseconds(schedule, best)
        best = min(best, taken)
        found.append((taken, spec, schedule))

    for choice in choices(request.kernel, request.repackable, request.machine, request.fixed_shapes):
        if clock.left <= 0:
            break
        measure(choice.spec)
    if found and (other := turned(parse_choice(min(found)[1]))) is not None and clock.left > 0:
        measure(other.spec)
    kernel.tried["rules"] = len(found)
    _settle(kernel, stand, found)


def _by_traces(kernel: _Kernel, stand: Stand, target: Target, seconds: float, seed: int, trials: int) -> None:
    why = cannot(kernel.request)
    if why:
        kernel.note = why
        return
    found, kernel.note = by_meta_schedule(kernel.request, stand, target, seconds, seed, trials, kernel.after)
    kernel.tried["meta-schedule"] = len(found)
    _settle(kernel, stand, found)


def _settle(kernel: _Kernel, stand: Stand, found: list[tuple[float, str, Schedule]]) -> None:
    """Take the fastest, if it is that once more beside what was taken so far, and computes the same."""
    held = kernel.request.rules if kernel.choice == RULES else kernel.request.scheduled(kernel.choice)
    assert held is not None
    for taken, spec, schedule in sorted(found, key=lambda each: each[:2])[:3]:
        if taken > kernel.after or not stand.agrees(schedule):
            continue
        before, after = stand.duel(held, schedule)
        if after < before * (1 - _GAIN):
            rules = stand.duel(kernel.request.rules, schedule)
            kernel.choice, (kernel.before, kernel.after) = spec, rules
            return


def _tuned(kernel: _Kernel) -> Tuned:
    choice = kernel.choice
    return Tuned(
        kernel.fingerprint,
        operands(kernel.request.kernel),
        kernel.calls,
        round(kernel.before),
        round(kernel.after),
        json.loads(choice) if choice.startswith("[") else choice,
        dict(sorted(kernel.tried.items())),
        kernel.note,
    )
