"""Share schedule summaries between search workers, so each kernel is scheduled once.

["first 1f3a…", [2560, 1, 1, [[0, 0, 0]], []]]       a line from one worker to the others
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import astuple, dataclass
from functools import partial
from typing import Any

from tvm.tirx import PrimFunc

from ...program import Overlay
from ...support.result_store import shared_store
from ...targets import Machine
from ...tir.in_place.analysis import Sharing
from ...tir.structural_key import structural_key
from ..weights.repack import Repack
from .candidates import Schedule, Schedules, fits, is_scheduled, reads_machine, schedules
from .largest_default import largest_default
from .row_schedules import row_schedule
from .shared_log import SharedLog


def _kinds(kind: type[Repack] = Repack) -> Iterator[type[Repack]]:
    yield kind
    for each in kind.__subclasses__():
        yield from _kinds(each)


#: every layout of weights; candidates.py has imported their rules
_REPACKS: dict[str, Callable[..., Repack]] = {each.__name__: each for each in _kinds()}
#: name, key and limit of a kernel's schedule, and the schedule on demand
_Limited = tuple[str, str, str, Callable[[], Schedule]]


@dataclass(frozen=True)
class ScheduleSummary:
    """Summarise a schedule without its kernel: see `candidates.Schedule`. Only those of rows say their repacks."""

    workspace: int
    threads: int
    sharing: Sharing
    repacks: tuple[Repack, ...] = ()


class ScheduleSummaries:
    """Remember schedule summaries, shared with processes that have the same `lines`, and kept for later searches.

    Of two processes at the same kernels, one should go `backwards`: else both always work on the same kernel.
    """

    def __init__(self, lines: SharedLog | None = None):
        self.lines, self.backwards = lines, False
        self._known: dict[str, Any] = {}

    def chosen(
        self, kernels: Mapping[str, PrimFunc], private: Mapping[str, frozenset[int]], machine: Machine, least: int = 0
    ) -> dict[str, ScheduleSummary]:
        """Summarise the schedule `schedule_program` would choose by rule for each kernel of a program.

        Each may use `least` bytes of workspace.
        """
        limited = self._limited(kernels, private, machine, least)
        return {name: self._summary(f"{limit} {key}", within) for name, key, limit, within in limited}

    def of_rows(
        self, kernel: PrimFunc, repackable: frozenset[int], machine: Machine, continues: bool
    ) -> ScheduleSummary:
        """Summarise the schedule of a kernel of rows, see `row_schedule`, with the repacks it asks for."""

        def written() -> list:
            found = row_schedule(kernel, repackable, machine, continues)
            return [found.workspace, found.threads, [[type(each).__name__, *astuple(each)] for each in found.repacks]]

        workspace, threads, repacks = self.remembered(f"rows {continues} {_key(kernel, repackable, machine)}", written)
        return ScheduleSummary(workspace, threads, Sharing(), tuple(_read_repack(*each) for each in repacks))

    def figures(
        self, kernels: Mapping[str, PrimFunc], private: Mapping[str, frozenset[int]], machine: Machine,
        name: str, figure: Callable[[Schedule], Any], least: int = 0,
    ) -> dict[str, Any]:  # fmt: skip
        """Compute `figure`, a JSON value, of each schedule in `chosen`; keep it under `name`."""
        found = {}
        for kernel, _, limit, within in self._limited(kernels, private, machine, least):
            place = f"{name} {limit} {structural_key(kernels[kernel], sorted(private[kernel]), machine)}"
            found[kernel] = self.remembered(place, _composed(figure, within))
        return found

    def _limited(
        self, kernels: Mapping[str, PrimFunc], private: Mapping[str, frozenset[int]], machine: Machine, least: int
    ) -> Iterator[_Limited]:
        """Yield the schedule of each kernel: the first, or the best within the workspace of those as TVM made them."""
        asked = [
            (
                name,
                _key(kernels[name], private[name], machine),
                partial(schedules, kernels[name], private[name], machine),
            )
            for name in sorted(kernels, reverse=self.backwards)
        ]
        defaults = ((kernels[name], (kernels[name], key, make)) for name, key, make in asked)
        most = max(least, largest_default(defaults, lambda each: self._default(*each)))
        for name, key, make in asked:
            within = _composed(lambda found: found.within(most, machine.register_bytes), make)
            first = self._summary(f"first {key}", _composed(lambda found: next(found.candidates()), make))
            fast = fits(first.workspace, first.threads, most, machine.register_bytes)
            limit = "first" if fast else f"{most} {machine.register_bytes}"
            yield name, key, limit, within

    def end(self) -> None:
        """Stop sharing; keep the summaries known so far."""
        if self.lines is not None:
            self.lines.close()
            self.lines = None

    def _default(self, kernel: PrimFunc, key: str, make: Callable[[], Schedules]) -> int:
        """Return the workspace of a kernel as TVM made it: the same for all machines, unless it is scheduled already."""
        return self.remembered(
            f"default {key if is_scheduled(kernel) else structural_key(kernel)}", lambda: make().default
        )

    def _summary(self, key: str, make: Callable[[], Schedule]) -> ScheduleSummary:
        return _read(self.remembered(key, _composed(_written, make)))

    def remembered(self, key: str, make: Callable[[], Any]) -> Any:
        """Return the JSON value of a key, made once for all processes and later searches."""
        if key not in self._known and self.lines is not None:
            self._known.update(map(json.loads, self.lines.new()))
        if key not in self._known:
            self._known[key] = shared_store().get_or_make(f"schedule {key}", make)
            if self.lines is not None:
                self.lines.append(json.dumps([key, self._known[key]]))
        return self._known[key]


def _key(kernel: PrimFunc, private: frozenset[int], machine: Machine) -> str:
    """Return the key of a kernel's schedules; machines share it where no rule asks for more than the threads."""
    return structural_key(kernel, sorted(private), machine if reads_machine(kernel) else machine.threads)


def _composed(then: Callable[[Any], Any], make: Callable[[], Any]) -> Callable[[], Any]:
    return lambda: then(make())


def _written(schedule: Schedule) -> list:
    found = schedule.sharing
    return [
        schedule.workspace,
        schedule.threads,
        found.results,
        *(list(map(astuple, each)) for each in (found.in_place, found.copies)),
    ]


def _read(line: list) -> ScheduleSummary:
    workspace, threads, results, *overlays = line
    return ScheduleSummary(
        workspace, threads, Sharing(results, *(tuple(Overlay(*each) for each in kind) for kind in overlays))
    )


def _read_repack(kind: str, *fields: Any) -> Repack:
    return _REPACKS[kind](*(tuple(each) if isinstance(each, list) else each for each in fields))
