"""What a plan has to know of schedules, which the processes of a search tell each other: none schedules what another has.

    ["first 1f3a…", [2560, 1, 1, [[0, 0, 0]], []]]       a line from one to the others
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import astuple, dataclass
from typing import Any

from tvm.tirx import PrimFunc

from ...program import Overlay
from ...targets import Machine
from ...tir.in_place_analysis import Sharing
from ...tir.structural_key import structural_key
from .candidates import Schedule, Schedules, fits, largest_default, schedules
from .shared_log import SharedLog


@dataclass(frozen=True)
class ScheduleSummary:
    """A way to run a kernel, without the kernel: see `scheduling.Schedule`."""

    workspace: int
    threads: int
    sharing: Sharing


class ScheduleSummaries:
    """Of the kernels that this process was asked for, or another one with the same `lines`.

    Of two that are at the same kernels one should go `backwards`: else both are at the same one all the time.
    """

    def __init__(self, lines: SharedLog | None = None):
        self.lines, self.backwards = lines, False
        self._known: dict[str, Any] = {}

    def chosen(
        self, kernels: Mapping[str, PrimFunc], private: Mapping[str, frozenset[int]], machine: Machine
    ) -> dict[str, ScheduleSummary]:
        """The outline of what `scheduling.chosen` chooses for each kernel of a program."""
        asked = [
            (name, structural_key(kernels[name], sorted(private[name]), machine), lambda name=name: schedules(kernels[name], private[name], machine))
            for name in sorted(kernels, reverse=self.backwards)
        ]
        most = largest_default(
            (kernels[name], lambda key=key, ways=ways: self._remembered(f"default {key}", lambda: ways().default))
            for name, key, ways in asked
        )
        return {name: self._within(key, ways, most, machine.register_bytes) for name, key, ways in asked}

    def end(self) -> None:
        """Tell and hear no more; what is known stays."""
        if self.lines is not None:
            self.lines.close()
            self.lines = None

    def _within(self, key: str, ways: Callable[[], Schedules], most: int, per_thread: int) -> ScheduleSummary:
        first = _read(self._remembered(f"first {key}", lambda: _written(next(ways().ways()))))
        if fits(first, most, per_thread):
            return first
        return _read(self._remembered(f"{most} {per_thread} {key}", lambda: _written(ways().within(most, per_thread))))

    def _remembered(self, key: str, make: Callable[[], Any]) -> Any:
        if key not in self._known and self.lines is not None:
            self._known.update(map(json.loads, self.lines.new()))
        if key not in self._known:
            self._known[key] = make()
            if self.lines is not None:
                self.lines.append(json.dumps([key, self._known[key]]))
        return self._known[key]


def _written(schedule: Schedule) -> list:
    found = schedule.sharing
    return [schedule.workspace, schedule.threads, found.results, *(list(map(astuple, each)) for each in (found.in_place, found.copies))]


def _read(line: list) -> ScheduleSummary:
    workspace, threads, results, *overlays = line
    return ScheduleSummary(workspace, threads, Sharing(results, *(tuple(Overlay(*each) for each in kind) for kind in overlays)))
