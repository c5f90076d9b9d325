"""`split-rows` and `split-channels`: stream a region of steps by rows or channels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...errors import SequenceError
from ...memory.streaming.region import region
from ..base import LoweredPass
from .in_body import StepNumbers, change_at, program_at, step_numbers

if TYPE_CHECKING:
    from ...kernels.lower.lower import Lowered
    from ...memory.streaming.region import Region
    from ...program import Program, Splits

#: channel axis of an image in the layout convolutions are compiled for
CHANNELS = 1


@dataclass(frozen=True)
class SplitPass(LoweredPass):
    """Stream a region of steps; `steps` are the first and the last, joined by `-`: `3.0-3.2` are of the body of loop 3."""

    steps: str

    def __post_init__(self) -> None:
        if len(self._steps.numbers) != 2 or self.first > self.last:
            raise ValueError(f"steps is '{self.steps}', not two numbers joined by -, the smaller one first")

    @property
    def _steps(self) -> StepNumbers:
        return step_numbers(self.steps, "-")

    @property
    def first(self) -> int:
        return self._steps.numbers[0]

    @property
    def last(self) -> int:
        return self._steps.numbers[1]

    def apply(self, lowered: Lowered) -> Lowered:
        program_at(lowered.program, self._steps.above, self.spec)
        return change_at(lowered, self._steps.above, self._stream)

    def _stream(self, lowered: Lowered) -> Lowered:
        from ...kernels.rewrite.splittable import splits_of
        from ...kernels.rewrite.stream_region import stream_region

        splits = splits_of(lowered, slice(self.first, self.last + 1))
        return stream_region(lowered, self.region(lowered.program, splits))

    def region(self, program: Program, splits: Mapping[str, Splits]) -> Region:
        """Select the steps to run as one; `splits` tell how each of their kernels splits. Raises SequenceError."""
        raise NotImplementedError

    def _region(self, program: Program, splits: Mapping[str, Splits], axis: int, group: int, in_place: int) -> Region:
        found = None
        if self.last < len(program.steps) and group > 0:
            found = region(program, splits, self.first, self.last, axis, group, in_place=in_place)
        if found is None:
            raise SequenceError(
                f"The pass '{self.spec}' does not fit this program of {len(program.steps)} steps.", "Search again."
            )
        return found


@dataclass(frozen=True)
class SplitRows(SplitPass):
    """Stream `rows` rows of the first step's result along `axis` at a time; see memory.streaming.region.

    With `in_place=1`, a result takes the place of an operand; with 2, it may grow over one of another size; see
    memory.streaming.in_place and .growth.
    """

    name = "split-rows"
    summary = "stream several kernels as one, a few rows at a time: no intermediate is ever whole"

    axis: int = 2
    rows: int = 1
    in_place: int = 0

    def region(self, program: Program, splits: Mapping[str, Splits]) -> Region:
        return self._region(program, splits, self.axis, self.rows, self.in_place)


@dataclass(frozen=True)
class SplitChannels(SplitPass):
    """Stream `channels` channels of the first step's result at a time; a final convolution accumulates them.

    With `in_place=1`, a result takes the place of an operand; with 2, it may grow over one of another size; see
    memory.streaming.in_place and .growth.
    """

    name = "split-channels"
    summary = "stream several kernels as one, a few channels at a time: no intermediate is ever whole"

    channels: int = 1
    in_place: int = 0

    def region(self, program: Program, splits: Mapping[str, Splits]) -> Region:
        return self._region(program, splits, CHANNELS, self.channels, self.in_place)
