"""Describe a step of a streaming region: the ticks at which it runs, the rows it computes and keeps."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

from .region_builder import StepSplit


@dataclass(slots=True)
class Stage:
    """Step of a region and its schedule.

    At tick `offset` + k · `period` it computes rows k · group up to (k + 1) · group of its result, of `extent` along
    `axis`; in the end the last `group` rows, if that does not divide them. The ring has room for `held` rows: all of
    them if the result is needed whole.

    A stage that sums up takes these rows of its `operand` instead, and in the end those left; `axis` and `extent` are the
    operand's, and `held` is 0. One that accumulates each row in parts computes them `leads` ticks before that tick. `lockstep` says that groups
    overlap at the end, and that each reader takes the group just computed, and no other rows. With a `slot`, by number,
    the group just computed is stored there until its readers have run, and its ring keeps the others.
    """

    step: int
    axis: int
    extent: int
    group: int
    period: int
    offset: int
    held: int
    operand: int | None = None
    leads: tuple[int, ...] = ()
    lockstep: bool = False
    slot: int | None = None

    @property
    def kept(self) -> int:
        """Return the rows there is room for in its own ring; 0 for a ring in a slot."""
        return self.held if self.slot is None else self.held - self.group

    @property
    def begin(self) -> int:
        """Return its first tick."""
        return self.offset - max(self.leads, default=0)

    @property
    def groups(self) -> int:
        """Return how many times it runs."""
        return -(-self.extent // self.group)

    @property
    def pieces(self) -> tuple[tuple[Stage, int], ...]:
        """Return the stages of a sum for whole groups and for the rows left, and their first rows."""
        rest = self.extent % self.group
        left = ((replace(self, extent=rest, group=rest), self.extent - rest),) if rest else ()
        return ((replace(self, extent=self.extent - rest), 0), *left)

    @property
    def end(self) -> int:
        """Return the tick after its last."""
        return self.offset + (self.groups - 1) * self.period + 1


class Read(NamedTuple):
    """Operand of a stage, by its place among the step's."""

    choice: StepSplit
    stage: Stage
    place: int
    tensor: int


class StageResult(NamedTuple):
    """Result of a region, and the stage that writes it."""

    tensor: int
    stage: Stage
