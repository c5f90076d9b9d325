"""Tune the kernels of a program, the slowest first, until the time is up.

First the rules' own parameters, a fifth of a second each; then, in the time left, MetaSchedule, if kernels are timed.
Costs are nanoseconds per call, or, for a target emulated here, instructions.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice

from ..kernels.schedule.candidates import Schedule
from ..kernels.schedule.choices import schedule_choices, turned
from ..kernels.schedule.tuned import ScheduleRequest, operand_types
from ..targets import Target
from .database import RULES, TunedKernel
from .measure.choose_harness import HarnessFactory
from .measure.harness import Harness
from .meta_schedule import cannot, search_by_meta_schedule
from .recorder import ScheduleRecorder

#: least share of the total cost to tune a kernel
_SHARE = 0.005
#: bytes of weights assumed to stay in caches between runs of a model
_KEPT = 8 << 20
#: least gain to take a schedule, as a fraction: less is noise
_GAIN = 0.03

#: called with the seconds elapsed
Progress = Callable[[float], None]


@dataclass
class _Kernel:
    """State of one kernel's tuning; `before` and `after` are costs of a call, 0 if unknown."""

    request: ScheduleRequest
    calls: int
    before: float
    after: float
    choice: str = RULES
    tried: dict[str, int] = field(default_factory=dict)
    note: str = ""

    @property
    def weight(self) -> float:
        """Return the cost of all its calls in a run."""
        return self.calls * self.after


class Countdown:
    """Countdown of `seconds`, started at construction."""

    def __init__(self, seconds: float, progress: Progress):
        self.seconds, self._progress, self._started = seconds, progress, time.monotonic()

    @property
    def left(self) -> float:
        over = time.monotonic() - self._started
        self._progress(min(over, self.seconds))
        return self.seconds - over

    def part(self, fraction: float) -> Callable[[], bool]:
        """Return a function to tell whether the first `fraction` of the time still runs."""
        return lambda: self.left > self.seconds * (1 - fraction)


def tune_kernels(
    recorder: ScheduleRecorder, target: Target, clock: Countdown, seed: int, trials: int, cold: bool = False
) -> list[TunedKernel]:
    """Find the best schedule for each recorded kernel.

    Kernels are timed with `cold` or warm caches if this machine runs `target` natively, else their instructions are
    counted. `trials` is the most schedules MetaSchedule may measure per kernel, natively only. Ctrl-C ends the search
    early and keeps its results. Raises ToolchainError if programs for the emulator cannot be built.
    """
    harnesses = HarnessFactory(target, seed, cold)
    kernels: list[_Kernel] = []
    try:
        if clock.left > 0:
            harnesses.build([request.rules for request in recorder.requests.values()])
        for kernel in _measure_rules(recorder, harnesses.of, clock):
            kernels.append(kernel)
        total = sum(kernel.weight for kernel in kernels)
        kernels.sort(key=lambda kernel: (-kernel.weight, kernel.request.fingerprint))
        worth = [kernel for kernel in kernels if kernel.weight and kernel.weight >= _SHARE * total]
        for kernel in worth:
            if clock.left <= 0:
                break
            _tune_parameters(kernel, harnesses.of(kernel.request), clock)
        worth.sort(key=lambda kernel: (-kernel.weight, kernel.request.fingerprint))
        for number, kernel in enumerate(worth if harnesses.native else []):
            rest = sum(other.weight for other in worth[number:])
            seconds = clock.left * kernel.weight / rest
            if not trials or seconds <= 0:
                break
            _tune_traces(kernel, harnesses.of(kernel.request), target, seconds, seed, trials)
    except KeyboardInterrupt:
        pass
    return [_result_of(kernel) for kernel in kernels]


def finds_cold_caches(weight_bytes: int) -> bool:
    """Return whether weights of this size are assumed to leave the caches between runs."""
    return weight_bytes > _KEPT


def within_workspace(kernels: list[TunedKernel], recorder: ScheduleRecorder) -> list[TunedKernel]:
    """Return the kernels with all row windows left to the rules.

    Several windows are compiled into one kernel, and only the whole program shows their common workspace.
    """
    windows = {fingerprint for fingerprint, request in recorder.requests.items() if request.fixed_shapes}
    note = "faster, but needs more workspace together with others"
    return [
        replace(each, choice=RULES, after=each.before, note=note)
        if each.fingerprint in windows and each.choice != RULES
        else each
        for each in kernels
    ]


def _measure_rules(
    recorder: ScheduleRecorder, harness_of: Callable[[ScheduleRequest], Harness], clock: Countdown
) -> Iterator[_Kernel]:
    """Yield the kernels, measured with the rules' schedules."""
    for fingerprint, request in recorder.requests.items():
        kernel = _Kernel(request, recorder.calls[fingerprint], 0, 0)
        if clock.left <= 0:
            kernel.note = "no time was left to measure it"
        elif math.isfinite(cost := harness_of(request).cost(request.rules)):
            kernel.before = kernel.after = cost
        else:
            kernel.note = "it executes too many instructions to count"
        yield kernel


def _tune_parameters(kernel: _Kernel, harness: Harness, clock: Countdown) -> None:
    request = kernel.request
    found: list[tuple[float, str, Schedule]] = []
    best = kernel.before

    def allowed_schedules(specs: Iterator[str]) -> Iterator[tuple[str, Schedule]]:
        for spec in specs:
            schedule = request.scheduled(spec) if clock.left > 0 else None
            if schedule is not None and request.allows(schedule):
                yield spec, schedule

    def measure(specs: Iterator[str]) -> None:
        nonlocal best
        candidates = allowed_schedules(specs)
        while batch := list(islice(candidates, harness.at_once)):
            harness.build([schedule for _, schedule in batch])
            for spec, schedule in batch:
                if clock.left > 0:
                    cost = harness.cost(schedule, best)
                    best = min(best, cost)
                    found.append((cost, spec, schedule))

    measure(schedule_choices(request.kernel, request.repackable, request.machine, request.fixed_shapes))
    if found and (other := turned(min(found, key=lambda each: each[:2])[1])) is not None:
        measure(iter([other]))
    kernel.tried["rules"] = len(found)
    _settle(kernel, harness, found)


def _tune_traces(kernel: _Kernel, harness: Harness, target: Target, seconds: float, seed: int, trials: int) -> None:
    why = cannot(kernel.request)
    if why:
        kernel.note = why
        return
    found, kernel.note = search_by_meta_schedule(kernel.request, harness, target, seconds, seed, trials, kernel.after)
    kernel.tried["meta-schedule"] = len(found)
    _settle(kernel, harness, found)


def _settle(kernel: _Kernel, harness: Harness, found: list[tuple[float, str, Schedule]]) -> None:
    """Take the cheapest schedule if it wins a second comparison and computes the same."""
    held = kernel.request.rules if kernel.choice == RULES else kernel.request.scheduled(kernel.choice)
    assert held is not None
    for cost, spec, schedule in sorted(found, key=lambda each: each[:2])[:3]:
        if cost > kernel.after or not harness.agrees(schedule):
            continue
        before, after = harness.compare(held, schedule)
        if after < before * (1 - _GAIN):
            rules = harness.compare(kernel.request.rules, schedule)
            kernel.choice, (kernel.before, kernel.after) = spec, rules
            return


def _result_of(kernel: _Kernel) -> TunedKernel:
    choice = kernel.choice
    return TunedKernel(
        kernel.request.fingerprint,
        operand_types(kernel.request.kernel),
        kernel.calls,
        round(kernel.before),
        round(kernel.after),
        json.loads(choice) if choice.startswith("[") else choice,
        dict(sorted(kernel.tried.items())),
        kernel.note,
    )
