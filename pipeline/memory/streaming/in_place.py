"""Let a streaming region store its result over an operand: each row after the last read of the row in its place.

    tick            0    1    2    3    4
    first reads     x0-1 x0-2 x1-3 x2-4 x3-5      a window over three rows
    second makes         y0   y1   y2   y3        from three rows of the first: y0 goes over x0, read last at tick 1

Segments of tensors are overlapped this way in vMCU (Zheng et al., 2024).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ...program import Program
from ..liveness import aligned
from .growth import SegmentOverlap, segment_overlaps
from .stage import Read, Stage, StageResult

#: a result takes the place of an operand of its size; of any size, over which it grows
IN_PLACE, GROWING = 1, 2


@dataclass(frozen=True)
class Replacement:
    """Result of a region that takes the place of operands, all on one buffer; with a `growth`, it grows over the only one."""

    result: int
    operands: tuple[int, ...]
    growth: SegmentOverlap | None = None

    def saved(self, program: Program, alignment: int) -> int:
        """Return the bytes that it saves."""
        apart = (self.result, *(() if self.growth is None else self.operands))
        together = 0 if self.growth is None else self.growth.nbytes
        return sum(aligned(program.tensors[each].nbytes, alignment) for each in apart) - aligned(together, alignment)


def replacements(
    program: Program,
    dying: Iterable[Sequence[Read]],
    results: Sequence[StageResult],
    growing: bool,
) -> Iterator[Replacement]:
    """Yield each way to store one of the `results` over operands: each item of `dying` reads one buffer.

    With `growing`, results grow over operands too. A result in the memory of an input, which is outside of a loop's body,
    stays there.
    """
    dying, given = list(dying), program.input_buffers()
    results = [each for each in results if program.tensors[each.tensor].buffer not in given]
    for readers in dying:
        for tensor, stage in results:
            if all(_is_read_before(program, stage, read) for read in readers):
                yield Replacement(tensor, tuple(dict.fromkeys(read.tensor for read in readers)))
    for result, operand, growth in segment_overlaps(program, dying, results) if growing else ():
        yield Replacement(result.tensor, (operand,), growth)


def _is_read_before(program: Program, writer: Stage, read: Read) -> bool:
    """Return whether each row of an operand is read for the last time before `writer` stores the row in its place."""
    follows = read.choice.rows.follows(read.place) if read.choice.rows is not None else None
    result, operand = program.tensors[program.steps[writer.step].writes[0]], program.tensors[read.tensor]
    if follows is None or writer.leads or operand.offset or operand.dtype != result.dtype:
        return False
    if result.nbytes != operand.nbytes or program.buffers[operand.buffer_number].nbytes != operand.nbytes:
        return False
    if _layout(operand.shape, follows.axis) != _layout(result.shape, writer.axis):
        return False
    slope, low, _ = follows.pace(writer.group)
    # a row of the operand is read last by the row of the reader that reaches furthest back to it
    since = writer.offset - (read.stage.offset - low * writer.period)
    in_time = since > 0 or (since == 0 and read.stage.step < writer.step)
    return slope == 1 and read.stage.period == writer.period and in_time


def _layout(shape: Sequence[int], axis: int) -> tuple[int, int, int]:
    """Return the elements before, along and after an axis: rows of equal layouts are at the same bytes."""
    return math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])
