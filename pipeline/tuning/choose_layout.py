"""How results lie, planes or pixels: what the kernels take in sum by measurement, least over all ways at once.

    step 0 ──► result 0 ──► step 1 ──► result 1 ──► step 2        vertices: results, two labels each
    cost(l0)               cost(l0, l1)              cost(l1)     costs: what a step takes, by how its tensors lie

A step that reads planes and writes pixels is the change of layouts: it is measured like any other, and there is no
kernel for the change alone. What needs more workspace than the program has, or shares less memory, is no way.
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
from ..kernels.schedule.candidates import Schedule, largest_default, schedules
from ..kernels.schedule.tuned import ScheduleRequest, Tuning
from ..passes.program.layout import Layout
from ..program import Program
from ..tir.index_grid import Unknown
from .elimination import WIDTH, Costs, cheapest, total
from .measure.choose_harness import HarnessFactory

#: of a kernel with more tensors that may lie either way, two ways are measured: none of them has channels last, or all
_EITHER = 3
#: what a kernel in another layout has to be faster by: less is noise
_GAIN = 0.03
#: how often a kernel is measured; the least counts
_TURNS = 4

#: the positions among a kernel's parameters of each tensor that may lie either way
_Groups = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class LayoutChoice:
    """`layout` is None where planes are best; `before` and `after` what a run of the kernels that could be changed
    takes, in the unit of the stands. `tried` is how many kernels were measured in other layouts; `proved` says that by
    what was measured no other way takes less."""

    layout: Layout | None
    before: float
    after: float
    tried: int
    proved: bool


def choose_layout(lowered: Lowered, stands: HarnessFactory, in_time: Callable[[], bool]) -> LayoutChoice:
    """The cheapest way for the results of a program, not scheduled yet, to lie. The kernels that take longest are
    measured first; those for which there is no time, or none any more after Ctrl-C, stay as they are."""
    vertices = movable_results(lowered.program)
    numbers = {tensor: number for number, tensor in enumerate(vertices)}
    steps = list(_steps(lowered.program, numbers))
    measured = _Measured(lowered, stands)
    calls = Counter((kernel, groups) for kernel, _, groups in steps)
    with suppress(KeyboardInterrupt):
        for kernel, _ in calls:
            if in_time():
                measured.measure(kernel, [()])
        for kernel, groups in sorted(calls, key=lambda each: -calls[each] * measured.cost(each[0], ())):
            if in_time():
                measured.measure(kernel, [_places(groups, labels) for labels in _ways(len(groups))])
    costs = [each for step in steps for each in _costs(step, measured)]
    found = cheapest(len(vertices), map(_reluctant, costs))
    chosen = sorted(step for step, label in zip(vertices.values(), found.labels) if label)
    layout = Layout("+".join(map(str, chosen)), digest_of(lowered.program)) if chosen else None
    before = total(costs, [0] * len(vertices))
    return LayoutChoice(layout, before, total(costs, found.labels), measured.others, found.proved)


class _Measured:
    """What a call of each kernel takes, by the parameters that have channels last; infinite where that is no way."""

    def __init__(self, lowered: Lowered, stands: HarnessFactory):
        asked = _RequestRecorder()
        schedule_program(replace(lowered, tuning=asked))
        requests = {request.kernel: request for request in asked.requests}
        self._requests = {name: requests[kernel] for name, kernel in lowered.kernels.items() if kernel in requests}
        self._most = largest_default((each.kernel, lambda each=each: _ways_of(each).default) for each in asked.requests)
        self._own, self._stands = own_weights(lowered.program), stands
        self._costs: dict[tuple[str, tuple[int, ...]], float] = {}

    @property
    def others(self) -> int:
        """How many kernels were measured in other layouts."""
        return sum(1 for (_, places), cost in self._costs.items() if places and math.isfinite(cost))

    def cost(self, kernel: str, places: tuple[int, ...]) -> float:
        """0 where it was not measured as it is; infinite where it was not so."""
        cost = self._costs.get((kernel, places), math.inf)
        return cost if places or math.isfinite(cost) else 0.0

    def measure(self, kernel: str, ways: Sequence[tuple[int, ...]]) -> None:
        new = [places for places in ways if (kernel, places) not in self._costs]
        asked = [(places, request) for places in new if (request := self._request(kernel, places)) is not None]
        self._stands.build([request.rules for _, request in asked])
        found = [(places, request, self._stands.of(request)) for places, request in asked]
        self._costs |= {(kernel, places): math.inf for places in new}
        for _, request, stand in found:
            stand.build([request.rules])
        for _ in range(_TURNS):  # turn by turn, so that whatever else the machine does hits all ways
            for places, request, stand in found:
                cost = stand.cost(request.rules)
                self._costs[kernel, places] = min(cost, self._costs[kernel, places])

    def _request(self, kernel: str, places: tuple[int, ...]) -> ScheduleRequest | None:
        """The kernel with channels last at these places, by the rules; None where it cannot be, or would cost ram."""
        plain = self._requests.get(kernel)
        if plain is None or not places:
            return plain
        try:
            changed, _ = with_channels_last(plain.kernel, places, self._own[kernel])
        except Unknown:
            return None
        request = replace(plain, kernel=changed)
        schedule = _ways_of(request).within(self._most, request.machine.register_bytes)
        return replace(request, rules=schedule) if plain.allows(schedule) else None


@dataclass(frozen=True)
class _RequestRecorder(Tuning):
    """A tuning that leaves every kernel to the rules, and keeps the requests for them."""

    requests: list[ScheduleRequest] = field(default_factory=list)

    def schedule(self, request: ScheduleRequest) -> Schedule:
        self.requests.append(request)
        return request.rules


def _ways_of(request: ScheduleRequest):
    return schedules(request.kernel, request.repackable, request.machine, request.fixed_shapes)


def _steps(program: Program, numbers: dict[int, int]) -> Iterator[tuple[str, tuple[int, ...], _Groups]]:
    """The kernel of each step that has vertices, these, and where they are among its parameters."""
    for step in program.steps:
        places: dict[int, list[int]] = {}
        for place, tensor in enumerate((*step.reads, *step.writes)):
            if tensor in numbers:
                places.setdefault(numbers[tensor], []).append(place)
        if places:
            yield step.kernel, tuple(places), tuple(map(tuple, places.values()))


def _ways(count: int) -> list[tuple[int, ...]]:
    """The labels of so many tensors of a kernel that are measured."""
    return list(product((0, 1), repeat=count)) if count <= _EITHER else [(0,) * count, (1,) * count]


def _places(groups: _Groups, labels: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(sorted(place for group, label in zip(groups, labels) if label for place in group))


def _costs(step: tuple[str, tuple[int, ...], _Groups], measured: _Measured) -> Iterator[Costs]:
    """What a step takes; where it has too many vertices for a table, they keep their layout."""
    kernel, vertices, groups = step
    if len(vertices) > WIDTH:
        yield from (Costs((vertex,), np.array([0.0, math.inf])) for vertex in vertices)
        return
    table = np.full((2,) * len(vertices), math.inf)
    for labels in _ways(len(vertices)):
        table[labels] = measured.cost(kernel, _places(groups, labels))
    yield Costs(vertices, table)


def _reluctant(costs: Costs) -> Costs:
    """Costs by which no gain counts that may be noise."""
    table = costs.table * (1 + _GAIN)
    table[(0,) * table.ndim] /= 1 + _GAIN
    return Costs(costs.vertices, table)
