"""The search: down the list of kernels, the one that takes longest first, until the time is up.

First the rules' own parameters, which cost a fifth of a second each; then, in the time that is left, MetaSchedule, where
kernels are timed. Costs are nanoseconds a call, or for a target that is emulated here, instructions.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice

from ..kernels.schedule.candidates import Schedule
from ..kernels.schedule.choices import parse_choice, schedule_choices, turned
from ..kernels.schedule.tuned import ScheduleRequest, operand_types
from ..targets import Target
from .database import RULES, TunedKernel
from .measure.choose_harness import HarnessFactory
from .measure.harness import Harness
from .meta_schedule import by_meta_schedule, cannot
from .recorder import ScheduleRecorder

#: a kernel with less of the cost than this is left to the rules
_SHARE = 0.005
#: bytes of weights that caches are believed to keep from one run of a model to the next
_KEPT = 8 << 20
#: what a schedule has to be faster by to be taken: less is noise
_GAIN = 0.03

#: called with the seconds that are over
Progress = Callable[[float], None]


@dataclass
class _Kernel:
    """What is known of one kernel; `before` and `after` are costs of a call, 0 where they are not known."""

    fingerprint: str
    request: ScheduleRequest
    calls: int
    before: float
    after: float
    choice: str = RULES
    tried: dict[str, int] = field(default_factory=dict)
    note: str = ""

    @property
    def weight(self) -> float:
        """Cost of a run."""
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

    def part(self, fraction: float) -> Callable[[], bool]:
        """Whether there is time left of a fraction of it all."""
        return lambda: self.left > self.seconds * (1 - fraction)


def tune_kernels(
    census: ScheduleRecorder, target: Target, clock: Clock, seed: int, trials: int, cold: bool = False
) -> list[TunedKernel]:
    """The kernels of a program, each with the best choice found for it: timed where this machine runs `target` natively,
    with `cold` caches or warm ones, else counted. `trials` are what MetaSchedule may measure for each, which is timed.

    Ctrl-C ends the search as the end of the time does: what was found counts. Raises ToolchainError where programs for
    the emulator cannot be built.
    """
    stands = HarnessFactory(target, seed, cold)
    kernels: list[_Kernel] = []
    try:
        if clock.left > 0:
            stands.build([request.rules for request in census.requests.values()])
        for kernel in _by_the_rules(census, stands.of, clock):
            kernels.append(kernel)
        total = sum(kernel.weight for kernel in kernels)
        kernels.sort(key=lambda kernel: (-kernel.weight, kernel.fingerprint))
        worth = [kernel for kernel in kernels if kernel.weight and kernel.weight >= _SHARE * total]
        for kernel in worth:
            if clock.left <= 0:
                break
            _by_parameters(kernel, stands.of(kernel.request), clock)
        worth.sort(key=lambda kernel: (-kernel.weight, kernel.fingerprint))
        for number, kernel in enumerate(worth if stands.native else []):
            rest = sum(other.weight for other in worth[number:])
            seconds = clock.left * kernel.weight / rest
            if not trials or seconds <= 0:
                break
            _by_traces(kernel, stands.of(kernel.request), target, seconds, seed, trials)
    except KeyboardInterrupt:
        pass
    return [_tuned(kernel) for kernel in kernels]


def finds_cold_caches(weight_bytes: int) -> bool:
    """Whether the kernels of a model with such weights find them in memory at each run."""
    return weight_bytes > _KEPT


def within_workspace(kernels: list[TunedKernel], census: ScheduleRecorder) -> list[TunedKernel]:
    """The same with all windows, which several to a kernel are compiled, left to the rules."""
    windows = {fingerprint for fingerprint, request in census.requests.items() if request.fixed_shapes}
    note = "faster, but together with others it needs more workspace"
    return [
        replace(each, choice=RULES, after=each.before, note=note)
        if each.fingerprint in windows and each.choice != RULES
        else each
        for each in kernels
    ]


def _by_the_rules(census: ScheduleRecorder, stand_of: Callable[[ScheduleRequest], Harness], clock: Clock) -> Iterator[_Kernel]:
    """The kernels, measured as the rules schedule them."""
    for fingerprint, request in census.requests.items():
        kernel = _Kernel(fingerprint, request, census.calls[fingerprint], 0, 0)
        if clock.left <= 0:
            kernel.note = "there was no time to measure it"
        elif math.isfinite(cost := stand_of(request).cost(request.rules)):
            kernel.before = kernel.after = cost
        else:
            kernel.note = "it executes more instructions than are counted"
        yield kernel


def _by_parameters(kernel: _Kernel, stand: Harness, clock: Clock) -> None:
    request = kernel.request
    found: list[tuple[float, str, Schedule]] = []
    best = kernel.before

    def allowed(specs: Iterator[str]) -> Iterator[tuple[str, Schedule]]:
        for spec in specs:
            schedule = request.scheduled(spec) if clock.left > 0 else None
            if schedule is not None and request.allows(schedule):
                yield spec, schedule

    def measure(specs: Iterator[str]) -> None:
        nonlocal best
        ways = allowed(specs)
        while batch := list(islice(ways, stand.at_once)):
            stand.build([schedule for _, schedule in batch])
            for spec, schedule in batch:
                if clock.left > 0:
                    cost = stand.cost(schedule, best)
                    best = min(best, cost)
                    found.append((cost, spec, schedule))

    known = schedule_choices(request.kernel, request.repackable, request.machine, request.fixed_shapes)
    measure(choice.spec for choice in known)
    if found and (other := turned(parse_choice(min(found, key=lambda each: each[:2])[1]))) is not None:
        measure(iter([other.spec]))
    kernel.tried["rules"] = len(found)
    _settle(kernel, stand, found)


def _by_traces(kernel: _Kernel, stand: Harness, target: Target, seconds: float, seed: int, trials: int) -> None:
    why = cannot(kernel.request)
    if why:
        kernel.note = why
        return
    found, kernel.note = by_meta_schedule(kernel.request, stand, target, seconds, seed, trials, kernel.after)
    kernel.tried["meta-schedule"] = len(found)
    _settle(kernel, stand, found)


def _settle(kernel: _Kernel, stand: Harness, found: list[tuple[float, str, Schedule]]) -> None:
    """Take the cheapest, if it is that once more beside what was taken so far, and computes the same."""
    held = kernel.request.rules if kernel.choice == RULES else kernel.request.scheduled(kernel.choice)
    assert held is not None
    for cost, spec, schedule in sorted(found, key=lambda each: each[:2])[:3]:
        if cost > kernel.after or not stand.agrees(schedule):
            continue
        before, after = stand.compare(held, schedule)
        if after < before * (1 - _GAIN):
            rules = stand.compare(kernel.request.rules, schedule)
            kernel.choice, (kernel.before, kernel.after) = spec, rules
            return


def _tuned(kernel: _Kernel) -> TunedKernel:
    choice = kernel.choice
    return TunedKernel(
        kernel.fingerprint,
        operand_types(kernel.request.kernel),
        kernel.calls,
        round(kernel.before),
        round(kernel.after),
        json.loads(choice) if choice.startswith("[") else choice,
        dict(sorted(kernel.tried.items())),
        kernel.note,
    )
