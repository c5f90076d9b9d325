"""Choose NCHW or NHWC for each result, for the least total cost of the kernels as measured.

    step 0 ──► result 0 ──► step 1 ──► result 1 ──► step 2        vertices: results, two labels each
    cost(l0)               cost(l0, l1)              cost(l1)     costs: cost of a step, by the layouts of its tensors

A step that reads planes (NCHW) and writes channels last (NHWC) changes the layout: it is measured like any other, and
no kernel is added for the change. A layout that needs more workspace than the program has, or shares less memory, is
excluded.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import product

import numpy as np

from ..kernels.lower.lower import Lowered
from ..kernels.lower.schedule_program import schedule_program
from ..kernels.rewrite.channels_last import digest_of, movable_results, own_weights, with_channels_last
from ..kernels.schedule.candidates import Schedule, schedules
from ..kernels.schedule.largest_default import largest_default
from ..kernels.schedule.tuned import ScheduleRequest, Tuning
from ..passes.program.layout import Layout
from ..program import Program
from ..tir.index_grid import NoMatch
from .elimination import WIDTH, JointCosts, cheapest, total
from .measure.choose_harness import HarnessFactory

#: most movable tensors of a kernel to measure in all combinations; with more, only all planes and all channels last
_EITHER = 3
#: least gain of a kernel in another layout, as a fraction: less is noise
_GAIN = 0.03
#: measurements per kernel; the least counts
_TURNS = 4

#: parameter positions of each movable tensor of a kernel
_Groups = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class LayoutChoice:
    """Layout with the least cost; `layout` is None if planes are best.

    `before` and `after` are the costs of a run of the kernels with movable tensors, in the unit of the harnesses.
    `tried` counts the measurements in other layouts; `proved` tells whether no other layout costs less as measured.
    """

    layout: Layout | None
    before: float
    after: float
    tried: int
    proved: bool


def choose_layout(lowered: Lowered, harnesses: HarnessFactory, in_time: Callable[[], bool]) -> LayoutChoice:
    """Choose the layouts of a program's results before scheduling.

    The slowest kernels are measured first. Kernels without time left, or not measured before Ctrl-C, keep their layout.
    """
    vertices = movable_results(lowered.program)
    numbers = {tensor: number for number, tensor in enumerate(vertices)}
    steps = list(_steps(lowered.program, numbers))
    measured = _Measured(lowered, harnesses)
    calls = Counter((kernel, groups) for kernel, _, groups in steps)
    with suppress(KeyboardInterrupt):
        for kernel, _ in calls:
            if in_time():
                measured.measure(kernel, [()])
        for kernel, groups in sorted(calls, key=lambda each: -calls[each] * measured.cost(each[0], ())):
            if in_time():
                measured.measure(kernel, [_places(groups, labels) for labels in _labellings(len(groups))])
    costs = [each for step in steps for each in _costs(step, measured)]
    found = cheapest(len(vertices), map(_reluctant, costs))
    chosen = sorted(step for step, label in zip(vertices.values(), found.labels) if label)
    layout = Layout("+".join(map(str, chosen)), digest_of(lowered.program)) if chosen else None
    before = total(costs, [0] * len(vertices))
    return LayoutChoice(layout, before, total(costs, found.labels), measured.others, found.proved)


class _Measured:
    """Measured costs of a kernel's call, by the parameters with channels last; infinite if excluded."""

    def __init__(self, lowered: Lowered, harnesses: HarnessFactory):
        asked = _RequestRecorder()
        schedule_program(replace(lowered, tuning=asked))
        requests = {request.kernel: request for request in asked.requests}
        self._requests = {name: requests[kernel] for name, kernel in lowered.kernels.items() if kernel in requests}
        self._most = largest_default(
            ((each.kernel, each) for each in asked.requests), lambda each: _schedules_of(each).default
        )
        self._own, self._harnesses = own_weights(lowered.program), harnesses
        self._costs: dict[tuple[str, tuple[int, ...]], float] = {}

    @property
    def others(self) -> int:
        """Count the measurements of kernels in other layouts."""
        return sum(1 for (_, places), cost in self._costs.items() if places and math.isfinite(cost))

    def cost(self, kernel: str, places: tuple[int, ...]) -> float:
        """Return the measured cost; unmeasured: 0 for the kernel as it is, infinite for other layouts."""
        cost = self._costs.get((kernel, places), math.inf)
        return cost if places or math.isfinite(cost) else 0.0

    def measure(self, kernel: str, choices: Sequence[tuple[int, ...]]) -> None:
        """Measure a kernel with channels last at each choice of places."""
        new = [places for places in choices if (kernel, places) not in self._costs]
        asked = [(places, request) for places in new if (request := self._request(kernel, places)) is not None]
        self._harnesses.build([request.rules for _, request in asked])
        found = [(places, request, self._harnesses.of(request)) for places, request in asked]
        self._costs |= {(kernel, places): math.inf for places in new}
        for _, request, harness in found:
            harness.build([request.rules])
        for _ in range(_TURNS):  # in turns, so that other work on the machine disturbs all layouts alike
            for places, request, harness in found:
                cost = harness.cost(request.rules)
                self._costs[kernel, places] = min(cost, self._costs[kernel, places])

    def _request(self, kernel: str, places: tuple[int, ...]) -> ScheduleRequest | None:
        """Return the kernel with channels last at these places, by the rules; None if impossible or at a cost of ram."""
        plain = self._requests.get(kernel)
        if plain is None or not places:
            return plain
        try:
            changed, _ = with_channels_last(plain.kernel, places, self._own[kernel])
        except NoMatch:
            return None
        request = replace(plain, kernel=changed)
        schedule = _schedules_of(request).within(self._most, request.machine.register_bytes)
        return replace(request, rules=schedule) if plain.allows(schedule) else None


@dataclass(frozen=True)
class _RequestRecorder(Tuning):
    """Tuning that leaves every kernel to the rules, and records the requests."""

    requests: list[ScheduleRequest] = field(default_factory=list)

    def schedule(self, request: ScheduleRequest) -> Schedule:
        self.requests.append(request)
        return request.rules


def _schedules_of(request: ScheduleRequest):
    return schedules(request.kernel, request.repackable, request.machine, request.fixed_shapes)


def _steps(program: Program, numbers: dict[int, int]) -> Iterator[tuple[str, tuple[int, ...], _Groups]]:
    """Yield, for each step with movable tensors, its kernel, their vertices, and their parameter positions."""
    for step in program.steps:
        places: dict[int, list[int]] = {}
        for place, tensor in enumerate((*step.reads, *step.writes)):
            if tensor in numbers:
                places.setdefault(numbers[tensor], []).append(place)
        if places:
            yield step.kernel, tuple(places), tuple(map(tuple, places.values()))


def _labellings(count: int) -> list[tuple[int, ...]]:
    """List the labellings to measure for `count` movable tensors of a kernel."""
    return list(product((0, 1), repeat=count)) if count <= _EITHER else [(0,) * count, (1,) * count]


def _places(groups: _Groups, labels: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(sorted(place for group, label in zip(groups, labels) if label for place in group))


def _costs(step: tuple[str, tuple[int, ...], _Groups], measured: _Measured) -> Iterator[JointCosts]:
    """Yield the costs of a step; with too many vertices for a table, they keep their layout."""
    kernel, vertices, groups = step
    if len(vertices) > WIDTH:
        yield from (JointCosts((vertex,), np.array([0.0, math.inf])) for vertex in vertices)
        return
    table = np.full((2,) * len(vertices), math.inf)
    for labels in _labellings(len(vertices)):
        table[labels] = measured.cost(kernel, _places(groups, labels))
    yield JointCosts(vertices, table)


def _reluctant(costs: JointCosts) -> JointCosts:
    """Penalise other layouts by the least gain, so that noise decides nothing."""
    table = costs.table * (1 + _GAIN)
    table[(0,) * table.ndim] /= 1 + _GAIN
    return JointCosts(costs.vertices, table)
