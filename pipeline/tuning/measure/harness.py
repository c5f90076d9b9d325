"""Define the measurement harness: the cost and the results of one kernel on random operands."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import ClassVar

import numpy as np

from ...kernels.schedule.candidates import Schedule
from ...kernels.schedule.tuned import ScheduleRequest
from .operands import Value, close, random_operands

#: ratio to the best cost in the first runs, beyond which a schedule is not measured further
HOPELESS = 1.3
#: guard bytes behind every operand, and their content: a wrong schedule may write there
GUARD, UNTOUCHED = 4096, 0x5A
_CASES = 2


class Harness(ABC):
    """Harness for the schedules of one request; the last `results` parameters are written."""

    #: unit of `cost`; schedules to build at once
    unit: ClassVar[str]
    at_once: ClassVar[int] = 1

    def __init__(self, request: ScheduleRequest, seed: int):
        self.request = request
        self.results = max(request.rules.sharing.results, 1)
        self._cases = [random_operands(request.kernel, seed, case) for case in range(_CASES)]

    @abstractmethod
    def build(self, schedules: Sequence[Schedule]) -> None:
        """Build the schedules not built yet."""

    @abstractmethod
    def cost(self, schedule: Schedule, best: float = float("inf")) -> float:
        """Measure a call; only coarsely beyond HOPELESS times `best`. Infinite if unknown."""

    @abstractmethod
    def compare(self, one: Schedule, other: Schedule) -> tuple[float, float]:
        """Measure the calls of both side by side."""

    @abstractmethod
    def _called(self, schedule: Schedule, values: list[Value]) -> list[np.ndarray] | None:
        """Return the results of a call; None if it fails, or writes anything else."""

    def agrees(self, schedule: Schedule) -> bool:
        """Return whether a schedule computes the rules' results, up to the order of sums, and nothing else."""
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
        """Return the arguments of a call: weights repacked as the schedule reads them.

        For a window, the number of its row is added, by default one in the middle.
        """
        repacks = {each.parameter: each for each in schedule.repacks}
        found: list[Value] = []
        for number, value in enumerate(self._cases[case]):
            if value is None:
                found.append(self.request.calls // 2 if row is None else row)
            else:
                found.append(repacks[number].apply(value) if number in repacks else value)
        return found
