"""When each buffer is alive, and what that says about the least memory a plan can need. All sizes are bytes.

step        0     1     2
input     [0 ───────)                dies after its last reader
middle          [1 ───────)
output                [2 ──)         lives to the end
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..graph import Program

#: how arena offsets are aligned unless a target says otherwise; kernels may use aligned vector loads
ALIGNMENT = 64


@dataclass(frozen=True)
class Lifetime:
    """The half-open range of steps `[start, end)` in which a buffer holds something; empty if nothing touches it."""

    start: int
    end: int

    def overlaps(self, other: Lifetime) -> bool:
        return self.start < other.end and other.start < self.end


def aligned(nbytes: int, alignment: int = ALIGNMENT) -> int:
    """`nbytes` rounded up to a multiple of `alignment`."""
    return -(-nbytes // alignment) * alignment


def timeline(program: Program) -> int:
    """The number of moments a plan tells apart: one for each step; one if there are none, for the caller's data."""
    return max(1, len(program.steps))


def lifetimes(program: Program) -> tuple[Lifetime, ...]:
    """The lifetime of each buffer, by its index.

    The caller writes every input before step 0, so each input is alive there, even one that no step reads. An input
    dies after its last reader; an output lives to the end; what a step writes is alive at that step even if nobody
    reads it. Views are tensors on one buffer and share its lifetime.
    """
    start: list[int | None] = [None] * len(program.buffers)
    end = [0] * len(program.buffers)
    for buffer in program.input_buffers():
        start[buffer], end[buffer] = 0, 1
    for number, step in enumerate(program.steps):
        for tensor in (*step.reads, *step.writes):
            buffer = program.tensors[tensor].buffer
            if buffer is None:
                continue
            if start[buffer] is None:
                start[buffer] = number
            end[buffer] = number + 1
    for buffer in program.output_buffers():
        if start[buffer] is not None:
            end[buffer] = timeline(program)
    return tuple(Lifetime(0 if first is None else first, last) for first, last in zip(start, end, strict=True))


def alive_bytes(program: Program, lives: Sequence[Lifetime], alignment: int = 1) -> list[int]:
    """The bytes alive at each step, each buffer rounded up to `alignment`; one entry where there are no steps."""
    change = [0] * (timeline(program) + 1)
    for buffer, life in zip(program.buffers, lives, strict=True):
        size = aligned(buffer.nbytes, alignment)
        change[life.start] += size
        change[life.end] -= size
    total, totals = 0, []
    for delta in change[:-1]:
        total += delta
        totals.append(total)
    return totals


def bound(program: Program, lives: Sequence[Lifetime] | None = None, alignment: int = ALIGNMENT) -> int:
    """The largest sum of buffers alive at one step: no arena of this order can be smaller."""
    return max(alive_bytes(program, lifetimes(program) if lives is None else lives, alignment))


def working_set(program: Program, step: int, alignment: int = ALIGNMENT) -> int:
    """The bytes of the distinct buffers that step number `step` reads or writes."""
    call = program.steps[step]
    touched = program.buffers_of((*call.reads, *call.writes))
    return sum(aligned(program.buffers[b].nbytes, alignment) for b in touched)


def floor(program: Program, alignment: int = ALIGNMENT) -> int:
    """The largest working set of one kernel: no order of the steps can need less. 0 where there are no steps."""
    return max((working_set(program, step, alignment) for step in range(len(program.steps))), default=0)


def shared_floor(program: Program) -> int:
    """What no order can be below, however buffers are shared: operands that may lie in results do, copies go away.

    Operands that are copied from, or to, count for nothing: two of them may be the same bytes. Nothing is rounded up:
    parts of a buffer need not be aligned.
    """
    copying = [step for step in program.steps if step.copies]
    copied = {buffer for step in copying for buffer in program.buffers_of(step.reads + step.writes)}

    def nbytes(buffers: set[int]) -> int:
        return sum(program.buffers[buffer].nbytes for buffer in buffers)

    least = 0
    for step in program.steps:
        if not step.copies:
            inside = set(program.buffers_of(tuple(step.reads[overlay.read] for overlay in step.in_place))) - copied
            written = set(program.buffers_of(step.writes))
            outside = set(program.buffers_of(step.reads)) - inside - written - copied
            least = max(least, nbytes(outside) + max(nbytes(inside), nbytes(written)))
    return least
