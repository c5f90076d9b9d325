"""Let a streaming region store its result over an operand: each row after the last read of the row in its place.

    tick     0    1    2    3    4
    reads    x0-1 x0-2 x1-3 x2-4 x3-5      a window over three rows
    makes    y0   y1   y2   y3   y4        into a ring of two rows …
    stores        y0   y1   y2   y3        … and from there over x, a tick later: y1 goes over x1, read last at tick 2

Segments of tensors are overlapped this way in vMCU (Zheng et al., 2024).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from ...program import Program
from ..liveness import aligned
from .growth import SegmentOverlap, segment_overlaps
from .stage import Read, Stage, StageResult

#: a result takes the place of an operand of its size; of any size, over which it grows
IN_PLACE, GROWING = 1, 2


@dataclass(frozen=True)
class Replacement:
    """Result of a region that takes the place of operands, all on one buffer; `step` writes it.

    It lets its rows wait in a ring of `held` rows, 0 if they are stored at once, for `lag` ticks. One with a `growth`
    grows over its only operand.
    """

    result: int
    operands: tuple[int, ...]
    step: int
    lag: int = 0
    held: int = 0
    growth: SegmentOverlap | None = None

    def saved(self, program: Program, alignment: int) -> int:
        """Return the bytes that it saves; its ring is a workspace of the region."""
        apart = (self.result, *(() if self.growth is None else self.operands))
        together = 0 if self.growth is None else self.growth.nbytes
        return sum(aligned(program.tensors[each].nbytes, alignment) for each in apart) - aligned(together, alignment)


def replacements(
    program: Program,
    dying: Iterable[Sequence[Read]],
    results: Sequence[StageResult],
    inside: Collection[int],
    growing: bool,
) -> Iterator[Replacement]:
    """Yield each way to store one of the `results` over operands: each item of `dying` reads one buffer.

    `inside` holds the tensors read in the region. With `growing`, results grow over operands too. A result in the memory of
    an input, which is outside of a loop's body, stays there.
    """
    dying, given = list(dying), program.input_buffers()
    results = [each for each in results if program.tensors[each.tensor].buffer not in given]
    for readers in dying:
        for tensor, stage in results:
            lags = [_lag(program, stage, read) for read in readers]
            if None not in lags:
                lag = max(each for each in lags if each is not None)
                operands = tuple(dict.fromkeys(read.tensor for read in readers))
                if lag < 0:
                    yield Replacement(tensor, operands, stage.step)
                elif tensor not in inside:
                    held = (lag // stage.period + 1) * stage.group
                    yield Replacement(tensor, operands, stage.step, lag, held)
    for result, operand, growth in segment_overlaps(program, dying, results) if growing else ():
        yield Replacement(result.tensor, (operand,), result.stage.step, growth=growth)


def _lag(program: Program, writer: Stage, read: Read) -> int | None:
    """Return the ticks that rows must be stored late, to be stored after the writer's kernel.

    None if an operand cannot be replaced. Negative if rows may be stored by the kernel itself.
    """
    follows = read.choice.rows.follows(read.place) if read.choice.rows is not None else None
    result, operand = program.tensors[program.steps[writer.step].writes[0]], program.tensors[read.tensor]
    if follows is None or writer.leads or operand.offset or operand.dtype != result.dtype:
        return None
    if result.nbytes != operand.nbytes or program.buffers[operand.buffer_number].nbytes != operand.nbytes:
        return None
    if _layout(operand.shape, follows.axis) != _layout(result.shape, writer.axis):
        return None
    slope, low, _ = follows.pace(writer.group)
    if slope != 1 or read.stage.period != writer.period:
        return None
    # a row of the operand is read last by the row of the reader that reaches furthest back to it
    lag = read.stage.offset - low * writer.period - writer.offset
    if lag < 0 or (lag == 0 and read.stage.step < writer.step):
        return -1
    return lag + 1 if read.stage.step > writer.step else lag


def _layout(shape: Sequence[int], axis: int) -> tuple[int, int, int]:
    """Return the elements before, along and after an axis: rows of equal layouts are at the same bytes."""
    return math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])
