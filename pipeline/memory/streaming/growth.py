"""Let the result of a streaming region grow over an operand that dies in it, of whatever size.

    operand          x0 x1 x2 x3 x4 x5      read from the first row to the last
    result     y0 y1 y2 y3                  y0 and y1 before it, y2 over x0 once that is read for the last time, …
               |shift|

Rows are stored one after the other in both: a tensor of several planes is turned in place before the region, or after it
(`kernels/rewrite/transpose_in_place.py`). Segments of tensors are overlapped this way in vMCU (Zheng et al., 2024).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TypeVar

from ...program import Overlay, Program, Step, Tensor
from ...program.row_dependence import Follows, group_starts
from ..liveness import ALIGNMENT, aligned
from .stage import Read, Stage, StageResult

_T = TypeVar("_T")
#: dtypes whose regions are faster with channels last, see kernels/rewrite/integers_last.py: their results stay apart
_SMALL = ("int8", "uint8")


@dataclass(frozen=True)
class SegmentOverlap:
    """Place of a dying operand, with rows along `axis`: `shift` bytes behind the result's first, both within `nbytes`."""

    axis: int
    shift: int
    nbytes: int


def segment_overlaps(
    program: Program, dying: Iterable[Sequence[Read]], results: Sequence[StageResult]
) -> Iterator[tuple[StageResult, int, SegmentOverlap]]:
    """Yield each way to let one of the `results` grow over an operand, by its tensor: each item of `dying` reads one buffer."""
    for readers in dying:
        axis = _axis_of(program, readers)
        for result in results:
            writer, what = result.stage, program.tensors[result.tensor]
            if axis is None or writer.leads or writer.operand is not None or not _is_alone(program, what, writer.axis):
                continue
            operand = program.tensors[readers[0].tensor]
            if operand.dtype == what.dtype not in _SMALL and operand.buffer != what.buffer:
                shift = _shift(operand.nbytes // operand.shape[axis], what.nbytes // writer.extent, writer, readers)
                growth = SegmentOverlap(axis, shift, max(shift + operand.nbytes, what.nbytes))
                yield result, readers[0].tensor, growth


def _axis_of(program: Program, readers: Sequence[Read]) -> int | None:
    """Return the axis along which all readers take the rows of one operand; None if they do not."""
    found = {read.choice.rows and read.choice.rows.follows(read.place) for read in readers}
    axes = {each.axis for each in found if each is not None}
    tensors = {read.tensor for read in readers}
    if None in found or len(axes) != 1 or len(tensors) != 1 or any(read.stage.leads for read in readers):
        return None
    ((axis,), (tensor,)) = axes, tensors
    return axis if _is_alone(program, program.tensors[tensor], axis) else None


def _is_alone(program: Program, tensor: Tensor, axis: int) -> bool:
    """Return whether a tensor is all of its buffer, with rows in pieces that can be moved."""
    if tensor.buffer is None or tensor.offset or program.buffers[tensor.buffer].nbytes != tensor.nbytes:
        return False
    return is_turned(tensor.shape, axis) or axis < len(tensor.shape) - 1


def _shift(row: int, written: int, writer: Stage, readers: Sequence[Read]) -> int:
    """Return how far the result must begin before the operand, whose `row` has so many bytes; the result's, `written`."""
    groups = tuple(group_starts(writer.extent, writer.group))
    most = 0
    for read in readers:
        follows, stage = read.choice.rows and read.choice.rows.follows(read.place), read.stage
        assert follows is not None
        needed = _first_rows_needed(follows, stage.extent, stage.group)
        for number, start in enumerate(groups):
            since = writer.offset + number * writer.period - stage.offset
            # at one tick, the writer's own read is not over while it writes
            runs = since // stage.period + 1 if stage.step < writer.step else -(-since // stage.period)
            live = needed[min(max(runs, 0), len(needed) - 1)]
            most = max(most, (start + writer.group) * written - live * row)
    return aligned(most, ALIGNMENT)


@lru_cache(1 << 12)
def _first_rows_needed(follows: Follows, extent: int, group: int) -> list[int]:
    """List by run of a reader the first operand row that it or a later run needs; at the end, the rows' number."""
    least = follows.extent
    found = [least]
    for start in reversed(group_starts(extent, group)):
        least = max(0, min(least, *follows.low[start : start + group]))
        found.append(least)
    return found[::-1]


def is_turned(shape: Sequence[int], axis: int) -> bool:
    """Return whether rows along an axis are stored one after the other."""
    return math.prod(shape[:axis]) == 1


def rows_first(shape: Sequence[_T], axis: int) -> tuple[_T, ...]:
    """Return a shape with the axis of the rows first."""
    return (shape[axis], *shape[:axis], *shape[axis + 1 :])


def turn_step(program: Program, tensor: int, axis: int, kernel: str, back: bool = False) -> tuple[Program, Step, int]:
    """Add a step that turns the rows of `tensor` in its place, or turns them `back`.

    Returns the program, the step and the number of the tensor added.
    """
    what = program.tensors[tensor]
    added = len(program.tensors)
    program = replace(program, tensors=(*program.tensors, replace(what, shape=rows_first(what.shape, axis))))
    read, write = (added, tensor) if back else (tensor, added)
    return program, Step(kernel, (read,), (write,), in_place=(Overlay(0, 0),)), added
