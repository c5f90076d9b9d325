"""A test stand: one kernel by itself, on made-up operands. What a call costs, and what it computes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import ClassVar

import numpy as np

from ...kernels.schedule.candidates import Schedule
from ...kernels.schedule.tuned import ScheduleRequest
from .operands import Value, close, random_operands

#: a schedule whose first runs take so many times the best one's is not measured any further
HOPELESS = 1.3
#: bytes that belong to no one behind every operand, and what they hold: a schedule that is wrong may write there
GUARD, UNTOUCHED = 4096, 0x5A
_CASES = 2


class Harness(ABC):
    """What one request's schedules are measured on. `results` are how many of the last parameters are written."""

    #: what `cost` is in, and how many schedules are best built together
    unit: ClassVar[str]
    at_once: ClassVar[int] = 1

    def __init__(self, request: ScheduleRequest, seed: int):
        self.request = request
        self.results = max(request.rules.sharing.results, 1)
        self._cases = [random_operands(request.kernel, seed, case) for case in range(_CASES)]

    @abstractmethod
    def build(self, schedules: Sequence[Schedule]) -> None:
        """Make them ready, those that are not yet."""

    @abstractmethod
    def cost(self, schedule: Schedule, best: float = float("inf")) -> float:
        """Of a call; no more than that it is beyond HOPELESS times `best`, where it is. Infinite where it is not known."""

    @abstractmethod
    def compare(self, one: Schedule, other: Schedule) -> tuple[float, float]:
        """What a call of both costs, measured side by side."""

    @abstractmethod
    def _called(self, schedule: Schedule, values: list[Value]) -> list[np.ndarray] | None:
        """The results of a call; None where it fails, or writes anything else."""

    def agrees(self, schedule: Schedule) -> bool:
        """Whether it computes what the rules' schedule does, up to the order of sums, and writes nothing else."""
        found = self._results(schedule)
        return found is not None and self._expected is not None and all(map(close, found, self._expected))

    @cached_property
    def _expected(self) -> list[np.ndarray] | None:
        return self._results(self.request.rules)

    def _results(self, schedule: Schedule) -> list[np.ndarray] | None:
        found: list[np.ndarray] = []
        for case in range(_CASES):
            for row in sorted({0, self.request.calls // 2, self.request.calls - 1}):
                values = self._values(schedule, case, row)
                results = self._called(schedule, values)
                if results is None:
                    return None
                found += results
                if not any(isinstance(each, int) for each in values):
                    break
        return found

    def _values(self, schedule: Schedule, case: int = 0, row: int | None = None) -> list[Value]:
        """Of a window, the number of its row, by default one in the middle; weights in the layout the schedule reads
        them in."""
        repacks = {each.parameter: each for each in schedule.repacks}
        found: list[Value] = []
        for number, value in enumerate(self._cases[case]):
            if value is None:
                found.append(self.request.calls // 2 if row is None else row)
            else:
                found.append(repacks[number].apply(value) if number in repacks else value)
        return found
