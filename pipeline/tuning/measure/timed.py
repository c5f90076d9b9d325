"""Time a kernel's call in this process, for a target this machine runs natively.

Operands stay in the caches between runs, unless `cold`: if a model's weights fit no cache, each kernel reads its own
from memory, and the best tile with warm caches may be worse than the rules' (ResNet-50: 0.82 ×).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tvm
import tvm_ffi

from ...codegen.objects import build_module
from ...kernels.schedule.candidates import Schedule
from ...kernels.schedule.tuned import ScheduleRequest
from ...memory import ALIGNMENT
from ...targets import Target
from .harness import GUARD, HOPELESS, UNTOUCHED, Harness
from .operands import Value

#: least seconds of a measurement; number of measurements, of which the shortest counts
_SECONDS, _REPEATS = 1e-3, 5
#: rounds of a comparison
_ROUNDS = 7
#: bytes written before every run with cold caches: a desktop's last-level cache, or a core's share of a server's
_FLUSHED = 32 << 20
_NAME = "kernel"


class TimingHarness(Harness):
    """Harness that times a call, in nanoseconds."""

    unit = "ns"

    def __init__(self, request: ScheduleRequest, target: Target, seed: int, cold: bool = False):
        super().__init__(request, seed)
        self._config, self._flushed = target.llvm_config(), _FLUSHED if cold else 0
        self._built: dict[int, tuple[Schedule, tvm.runtime.Module]] = {}

    def build(self, schedules: Sequence[Schedule]) -> None:
        for each in schedules:
            if id(each) not in self._built:  # the schedule is kept too, so that its id stays unique
                self._built[id(each)] = each, build_module({_NAME: each.kernel}, self._config)

    def cost(self, schedule: Schedule, best: float = float("inf")) -> float:
        """Return the shortest of several measurements, or of the first ones if hopeless against `best`."""
        arguments = self._arguments(self._values(schedule))
        first = min(self._timer(schedule, 1, 3)(*arguments).results)
        if first * 1e9 > best * HOPELESS and first > _SECONDS / 10:
            return first * 1e9
        return min(first, *self._timer(schedule, self._number(first), _REPEATS)(*arguments).results) * 1e9

    def compare(self, one: Schedule, other: Schedule) -> tuple[float, float]:
        """Measure both in turns, so that other work disturbs both alike; return the shortest of each."""
        times: tuple[list[float], list[float]] = [], []
        runs = []
        for schedule in (one, other):
            arguments = self._arguments(self._values(schedule))
            first = min(self._timer(schedule, 1, 2)(*arguments).results)
            runs.append((self._timer(schedule, self._number(first), 1), arguments))
        for _ in range(_ROUNDS):
            for found, (run, arguments) in zip(times, runs):
                found.append(min(run(*arguments).results) * 1e9)
        return min(times[0]), min(times[1])

    def _called(self, schedule: Schedule, values: list[Value]) -> list[np.ndarray] | None:
        guards: list[np.ndarray] = []
        arguments = self._arguments(values, guards)
        self._module(schedule)[_NAME](*arguments)
        if not all((each == UNTOUCHED).all() for each in guards):
            return None
        return [each.numpy().copy() for each in arguments[-self.results :]]

    def _number(self, seconds: float) -> int:
        """Return the runs per measurement of a kernel with this duration; 1 with cold caches."""
        return 1 if self._flushed else max(1, round(_SECONDS / max(seconds, 1e-9)))

    def _timer(self, schedule: Schedule, number: int, repeat: int) -> Callable[..., Any]:
        module = self._module(schedule)
        return module.time_evaluator(_NAME, tvm.cpu(), number=number, repeat=repeat, cache_flush_bytes=self._flushed)

    def _module(self, schedule: Schedule) -> tvm.runtime.Module:
        self.build([schedule])
        return self._built[id(schedule)][1]

    def _arguments(self, values: list[Value], guards: list[np.ndarray] | None = None) -> list[Any]:
        """Return the arguments of a call; append the guard behind each operand to `guards`."""
        found: list[Any] = []
        for value in values:
            if isinstance(value, int):
                found.append(value)
                continue
            tensor, behind = _place(value)
            found.append(tensor)
            if guards is not None:
                guards.append(behind)
        return found


def _place(value: np.ndarray) -> tuple[tvm.runtime.Tensor, np.ndarray]:
    """Copy `value`, aligned as in an arena; return the copy and the guard bytes behind it."""
    block = np.full(value.nbytes + ALIGNMENT + GUARD, UNTOUCHED, np.uint8)
    start = -block.ctypes.data % ALIGNMENT
    array = block[start : start + value.nbytes].view(value.dtype).reshape(value.shape)
    array[...] = value
    return tvm_ffi.from_dlpack(array, require_alignment=0), block[start + value.nbytes :]
