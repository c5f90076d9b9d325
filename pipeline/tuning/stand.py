"""A test stand: one kernel by itself, in this process, on made-up operands. How long it takes, and what it computes.

Its operands stay in the caches from run to run, unless it is to be `cold`: of a model whose weights no cache holds, each
kernel finds its own in memory, and a tile that is best with warm caches may be worse than the rules' (ResNet-50: 0.82 ×).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import tvm
import tvm_ffi

from ..kernels.build import build_module
from ..kernels.scheduling import Schedule
from ..kernels.tuning import Request
from ..memory import ALIGNMENT
from ..targets import Target
from ..verify.runner import numpy_dtype

#: seconds that one measurement takes at least, and how many there are, of which the shortest counts
_SECONDS, _REPEATS = 1e-3, 5
#: bytes written before every run with cold caches: as many as the last cache of a desktop or a server's share of it has
_FLUSHED = 32 << 20
#: a schedule whose first runs take so many times the best one's is not measured any further
_HOPELESS = 1.3
#: largest difference between two schedules' results, relative to their range: sums in another order
_TOLERANCE, _TOLERANCE_OF_HALVES = 1e-5, 4e-3
_NAME = "kernel"
#: bytes that belong to no one behind every operand, and what they hold: a schedule that is wrong may write there
_GUARD, _UNTOUCHED = 4096, 0x5A


class Stand:
    """What one request's schedules are measured on. `results` are how many of the last parameters are written."""

    def __init__(self, request: Request, target: Target, seed: int, cold: bool = False):
        self._flushed = _FLUSHED if cold else 0
        self.request, self._config = request, target.tvm_config()
        self.results = max(request.rules.sharing.results, 1)
        self._cases = [_operands(request, seed, case) for case in range(2)]
        self._built: dict[int, tuple[Schedule, tvm.runtime.Module]] = {}
        self._expected = self._outputs(request.rules)

    def nanoseconds(self, schedule: Schedule, best: float = float("inf")) -> float:
        """Of a call: the shortest of several measurements, or of the first ones where it will not come near `best`."""
        arguments = self._arguments(schedule, 0, middle=True)
        first = min(self._timer(schedule, 1, 3)(*arguments).results)
        if first * 1e9 > best * _HOPELESS and first > _SECONDS / 10:
            return first * 1e9
        return min(first, *self._timer(schedule, self._number(first), _REPEATS)(*arguments).results) * 1e9

    def duel(self, one: Schedule, other: Schedule, rounds: int = 7) -> tuple[float, float]:
        """Nanoseconds a call of both, turn by turn, so that whatever else the machine does hits both; the shortest."""
        times: tuple[list[float], list[float]] = [], []
        runs = []
        for schedule in (one, other):
            arguments = self._arguments(schedule, 0, middle=True)
            first = min(self._timer(schedule, 1, 2)(*arguments).results)
            runs.append((self._timer(schedule, self._number(first), 1), arguments))
        for _ in range(rounds):
            for found, (run, arguments) in zip(times, runs):
                found.append(min(run(*arguments).results) * 1e9)
        return min(times[0]), min(times[1])

    def agrees(self, schedule: Schedule) -> bool:
        """Whether it computes what the rules' schedule does, up to the order of sums."""
        return all(map(_close, self._outputs(schedule), self._expected))

    def _number(self, seconds: float) -> int:
        """Runs in a row that are one measurement, of a kernel that takes so long; with cold caches each is one."""
        return 1 if self._flushed else max(1, round(_SECONDS / max(seconds, 1e-9)))

    def _timer(self, schedule: Schedule, number: int, repeat: int) -> Callable[..., object]:
        module = self._module(schedule)
        return module.time_evaluator(_NAME, tvm.cpu(), number=number, repeat=repeat, cache_flush_bytes=self._flushed)

    def _module(self, schedule: Schedule) -> tvm.runtime.Module:
        if id(schedule) not in self._built:  # with the schedule, whose id is no other's as long as it is kept
            self._built[id(schedule)] = schedule, build_module({_NAME: schedule.kernel}, self._config)
        return self._built[id(schedule)][1]

    def _outputs(self, schedule: Schedule) -> list[np.ndarray]:
        module, found = self._module(schedule), []
        for case in range(len(self._cases)):
            for row in sorted({0, self.request.calls // 2, self.request.calls - 1}):
                guarded: list[np.ndarray] = []
                arguments = self._arguments(schedule, case, row=row, guarded=guarded)
                module[_NAME](*arguments)
                found += [each.numpy().copy() for each in arguments[-self.results :]]
                found.append(np.array([(each == _UNTOUCHED).all() for each in guarded]))
                if not any(isinstance(each, int) for each in arguments):
                    break
        return found

    def _arguments(
        self, schedule: Schedule, case: int, row: int = 0, middle: bool = False, guarded: list[np.ndarray] | None = None
    ) -> list[object]:
        """Of a window, the number of its row; weights in the layout the schedule reads them in. What lies behind each
        operand is added to `guarded`."""
        repacks = {each.parameter: each for each in schedule.repacks}
        found: list[object] = []
        for number, value in enumerate(self._cases[case]):
            if value is None:
                found.append(self.request.calls // 2 if middle else row)
            else:
                tensor, behind = _placed(repacks[number].apply(value) if number in repacks else value)
                found.append(tensor)
                if guarded is not None:
                    guarded.append(behind)
        return found


def _placed(value: np.ndarray) -> tuple[tvm.runtime.Tensor, np.ndarray]:
    """A copy of `value`, aligned as in an arena, and the bytes behind it."""
    block = np.full(value.nbytes + ALIGNMENT + _GUARD, _UNTOUCHED, np.uint8)
    start = -block.ctypes.data % ALIGNMENT
    array = block[start : start + value.nbytes].view(value.dtype).reshape(value.shape)
    array[...] = value
    return tvm_ffi.from_dlpack(array, require_alignment=0), block[start + value.nbytes :]


def _operands(request: Request, seed: int, case: int) -> list[np.ndarray | None]:
    """An array for each parameter, None for a number. Integers are 0: whatever they index is there."""
    generator = np.random.default_rng([seed, case])
    found: list[np.ndarray | None] = []
    for param in request.kernel.params:
        shape = getattr(param.ty, "shape", None)
        if shape is None:
            found.append(None)
            continue
        extents, dtype = [int(extent) for extent in shape], numpy_dtype(str(param.ty.dtype))
        found.append(_values(generator, extents, dtype, case))
    return found


def _values(generator: np.random.Generator, shape: Sequence[int], dtype: np.dtype, case: int) -> np.ndarray:
    if dtype == np.bool_ or dtype in (np.int8, np.uint8):
        return generator.integers(0, 2, shape).astype(dtype)
    if dtype.kind in "iu":
        return np.zeros(shape, dtype)
    # positive numbers too: of a square root or logarithm of others there is nothing to compare
    return (generator.standard_normal(shape) if case == 0 else generator.random(shape) + 0.5).astype(dtype)


def _close(one: np.ndarray, other: np.ndarray) -> bool:
    if one.dtype.kind not in "f" and one.dtype.name != "bfloat16":
        return bool((one == other).all())
    # results in two bytes are known to three digits
    tolerance = _TOLERANCE if one.dtype.itemsize > 2 else _TOLERANCE_OF_HALVES
    one, other = one.astype(np.float64), other.astype(np.float64)
    finite = np.isfinite(other)
    if not np.array_equal(np.isfinite(one), finite):
        return False
    scale = float(np.abs(other[finite]).max(initial=0.0))
    return bool(np.abs(one[finite] - other[finite]).max(initial=0.0) <= tolerance * scale)
