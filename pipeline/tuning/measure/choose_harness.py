"""Choose the harness of a target: kernels are timed if this machine runs it natively, else counted."""

from __future__ import annotations

from collections.abc import Sequence

from ...kernels.schedule.candidates import Schedule
from ...kernels.schedule.tuned import ScheduleRequest
from ...targets import Target, how_to_run
from .counted import CountingHarness, Programs
from .harness import Harness
from .timed import TimingHarness


class HarnessFactory:
    """Create measurement harnesses for one target; natively, with `cold` or warm caches.

    `of` and `build` raise ToolchainError if programs for an emulator cannot be built.
    """

    def __init__(self, target: Target, seed: int, cold: bool = False):
        self.native = how_to_run(target).native
        self._target, self._seed, self._cold = target, seed, cold
        self._programs = Programs(target)

    def of(self, request: ScheduleRequest) -> Harness:
        if self.native:
            return TimingHarness(request, self._target, self._seed, self._cold)
        return CountingHarness(request, self._programs, self._seed)

    def build(self, schedules: Sequence[Schedule]) -> None:
        """Build schedules to be measured into one program for the emulator: linking takes longest."""
        if not self.native:
            self._programs.build(schedules)
