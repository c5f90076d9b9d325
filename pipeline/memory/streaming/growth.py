"""Let the result of a streaming region grow over an operand that dies in it, of whatever size.

    operand          x0 x1 x2 x3 x4 x5      read from the first row to the last
    result     y0 y1 y2 y3                  y0 and y1 before it, y2 over x0 once that is read for the last time, …
               |shift|

Rows lie one after the other in both: a tensor of several planes is turned in place before the region, or after it
(`Turn`, `kernels/rewrite/turn_rows.py`). Segments of tensors are overlapped this way in vMCU (Zheng et al., 2024).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from ...program import Overlay, Program, Step, Tensor
from ...program.row_dependence import group_starts
from ..liveness import ALIGNMENT, aligned

if TYPE_CHECKING:
    from .in_place import Read, Result
    from .region import Stage

_T = TypeVar("_T")
#: dtypes whose regions are faster with channels last, see kernels/rewrite/integers_last.py: their results stay apart
_SMALL = ("int8", "uint8")


@dataclass(frozen=True)
class Growth:
    """Place of a dying operand, with rows along `axis`: `shift` bytes behind the result's first, both within `nbytes`."""

    axis: int
    shift: int
    nbytes: int


@dataclass(frozen=True)
class Grown:
    """Result of a region, by the step that writes it, and the operand it grows over."""

    result: int
    operand: int
    step: int
    growth: Growth


def growths_of(program: Program, dying: Iterable[Sequence[Read]], results: Sequence[Result]) -> Iterator[Grown]:
    """Yield each way to let one of the `results` grow over an operand: each item of `dying` reads one buffer."""
    for readers in dying:
        axis = _axis_of(program, readers)
        for tensor, writer in results:
            what = program.tensors[tensor]
            if axis is None or writer.leads or writer.operand is not None or not _is_alone(program, what, writer.axis):
                continue
            operand = program.tensors[readers[0].tensor]
            if operand.dtype == what.dtype not in _SMALL and operand.buffer != what.buffer:
                shift = _shift(operand.nbytes // operand.shape[axis], what.nbytes // writer.extent, writer, readers)
                growth = Growth(axis, shift, max(shift + operand.nbytes, what.nbytes))
                yield Grown(tensor, readers[0].tensor, writer.step, growth)


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
    """Tell whether a tensor is all of its buffer, and its rows lie in pieces that can be moved."""
    if tensor.buffer is None or tensor.offset or program.buffers[tensor.buffer].nbytes != tensor.nbytes:
        return False
    return is_turned(tensor.shape, axis) or axis < len(tensor.shape) - 1


def _shift(row: int, written: int, writer: Stage, readers: Sequence[Read]) -> int:
    """Return how far the result must begin before the operand, whose `row` has so many bytes; the result's, `written`."""
    most = 0
    needed = [_needed_from(read) for read in readers]
    for number, start in enumerate(group_starts(writer.extent, writer.group)):
        tick = writer.offset + number * writer.period
        live = min(firsts[_done(read.stage, tick, writer.step)] for read, firsts in zip(readers, needed))
        most = max(most, (start + writer.group) * written - live * row)
    return aligned(most, ALIGNMENT)


def _done(stage: Stage, tick: int, step: int) -> int:
    """Count the times a stage has run by a tick, when step `step` runs; its own run is not over while it writes."""
    since = tick - stage.offset + (stage.step < step and stage.period)
    runs = since // stage.period if stage.step < step else -(-since // stage.period)
    return min(max(runs, 0), stage.groups)


def _needed_from(read: Read) -> list[int]:
    """List by run of a stage the first row of the operand that it, or a later run, needs; at the end, the rows' number."""
    assert read.choice.rows is not None
    follows = read.choice.rows.follows(read.place)
    assert follows is not None
    least = follows.extent
    found = [least]
    for start in reversed(group_starts(read.stage.extent, read.stage.group)):
        least = max(0, min(least, *follows.low[start : start + read.stage.group]))
        found.append(least)
    return found[::-1]


def is_turned(shape: Sequence[int], axis: int) -> bool:
    """Tell whether rows along an axis lie one after the other."""
    return math.prod(shape[:axis]) == 1


def turned(shape: Sequence[_T], axis: int) -> tuple[_T, ...]:
    """Return a shape with the axis of the rows first."""
    return (shape[axis], *shape[:axis], *shape[axis + 1 :])


def turn_step(program: Program, tensor: int, axis: int, kernel: str, back: bool = False) -> tuple[Program, Step, int]:
    """Add the `tensor` with its rows one after the other, in its place, and a step that turns it, or turns it `back`.

    Returns the program, the step and the number of the tensor added.
    """
    what = program.tensors[tensor]
    added = len(program.tensors)
    program = replace(program, tensors=(*program.tensors, replace(what, shape=turned(what.shape, axis))))
    read, write = (added, tensor) if back else (tensor, added)
    return program, Step(kernel, (read,), (write,), in_place=(Overlay(0, 0),)), added
