"""`split-rows` and `split-channels`: several steps run as one, a few rows, or channels, at a time."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...errors import SequenceError
from ...memory.streaming.region import region
from ..base import LoweredPass

if TYPE_CHECKING:
    from ...kernels.lower.lower import Lowered
    from ...memory.streaming.region import Region
    from ...program import Program, Splits

#: where the channels of an image are, in the layout convolutions are compiled for
CHANNELS = 1


@dataclass(frozen=True)
class SplitPass(LoweredPass):
    """`steps` are the first and the last step that run as one, by their number, joined by `-`."""

    steps: str

    def __post_init__(self) -> None:
        if not re.fullmatch(r"\d+-\d+", self.steps) or self.first > self.last:
            raise ValueError(f"steps is '{self.steps}', not two numbers joined by -, the smaller one first")

    @property
    def first(self) -> int:
        return int(self.steps.split("-")[0])

    @property
    def last(self) -> int:
        return int(self.steps.split("-")[1])

    def apply(self, lowered: Lowered) -> Lowered:
        from ...kernels.rewrite.splittable import splits_of
        from ...kernels.rewrite.stream_region import stream_region

        return stream_region(lowered, self.region(lowered.program, splits_of(lowered)))

    def region(self, program: Program, splits: Mapping[str, Splits]) -> Region:
        """Select the steps to run as one; `splits` tell how each kernel splits. Raises SequenceError."""
        raise NotImplementedError

    def _region(self, program: Program, splits: Mapping[str, Splits], axis: int, group: int) -> Region:
        found = None
        if self.last < len(program.steps) and group > 0:
            found = region(program, splits, self.first, self.last, axis, group)
        if found is None:
            raise SequenceError(
                f"The pass '{self.spec}' does not fit this program of {len(program.steps)} steps.", "Search again."
            )
        return found


@dataclass(frozen=True)
class SplitRows(SplitPass):
    """The rows are those of the first step's result along `axis`, `rows` of them at a time; see memory.streaming.region."""

    name = "split-rows"
    summary = "runs several kernels as one, a few rows at a time: what is between them is never whole"

    axis: int = 2
    rows: int = 1

    def region(self, program: Program, splits: Mapping[str, Splits]) -> Region:
        return self._region(program, splits, self.axis, self.rows)


@dataclass(frozen=True)
class SplitChannels(SplitPass):
    """By `channels` of the first step's result at a time; a convolution at the end takes them into its sum."""

    name = "split-channels"
    summary = "runs several kernels as one, a few channels at a time: what is between them is never whole"

    channels: int = 1

    def region(self, program: Program, splits: Mapping[str, Splits]) -> Region:
        return self._region(program, splits, CHANNELS, self.channels)
