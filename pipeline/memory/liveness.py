"""Compute buffer lifetimes and the lower bounds that follow from them. All sizes are bytes.

step        0     1     2
input     [0 ───────)                dies after its last reader
middle          [1 ───────)
output                [2 ──)         lives to the end

Parts of a buffer that several tensors share have lifetimes of their own: while a concatenation is built in place, the
slot of a missing operand is free.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, chain

from ..program import Program, Step

#: default alignment of arena offsets, in bytes; kernels may use aligned vector loads
ALIGNMENT = 64


@dataclass(frozen=True)
class Lifetime:
    """Half-open range of steps `[start, end)` in which a buffer holds data; empty if nothing touches it."""

    start: int
    end: int

    def overlaps(self, other: Lifetime) -> bool:
        """Return whether both hold data at a common step."""
        return self.start < other.end and other.start < self.end


def aligned(nbytes: int, alignment: int = ALIGNMENT) -> int:
    """Round `nbytes` up to a multiple of `alignment`."""
    return -(-nbytes // alignment) * alignment


def timeline(program: Program) -> int:
    """Count the moments of a plan: one per step, at least one for the caller's data."""
    return max(1, len(program.steps))


def lifetimes(program: Program) -> tuple[Lifetime, ...]:
    """Return the lifetime of each buffer, by index.

    The caller writes every input before step 0, so each input is alive there, even one that no step reads. An input
    dies after its last reader. An output lives to the end. A written buffer is alive at its step even if nobody reads
    it. Views are tensors on one buffer and share its lifetime.
    """
    return _lives(program, len(program.buffers), program.buffers_of)


def lives_of(
    count: int, given: Iterable[int], touched: Iterable[Iterable[int]], kept: Iterable[int], moments: int
) -> tuple[Lifetime, ...]:
    """Return the lifetimes of `count` places, from first to last step that `touched` them.

    Places in `given` are alive from the start. Places in `kept` live to the end of `moments`, if anything uses them.
    """
    start: list[int | None] = [None] * count
    end = [0] * count
    for place in given:
        start[place], end[place] = 0, 1
    for number, places in enumerate(touched):
        for place in places:
            if start[place] is None:
                start[place] = number
            end[place] = number + 1
    for place in kept:
        if start[place] is not None:
            end[place] = moments
    return tuple(Lifetime(0 if first is None else first, last) for first, last in zip(start, end, strict=True))


def sum_alive(sizes: Iterable[int], lives: Iterable[Lifetime], moments: int) -> list[int]:
    """Sum the sizes alive at each moment."""
    change = [0] * (moments + 1)
    for size, life in zip(sizes, lives, strict=True):
        change[life.start] += size
        change[life.end] -= size
    return list(accumulate(change[:-1]))


class BufferParts:
    """Number the parts of a program's buffers: byte ranges that are used together.

    A buffer is cut at the ends of the tensors on it, moved outwards to multiples of `alignment`. A buffer used as a
    whole is one part. `buffers`, `lowers` and `sizes` hold, for each part, its buffer, its first byte in that buffer,
    and its bytes.
    """

    def __init__(self, program: Program, alignment: int = ALIGNMENT):
        self._program = program
        cuts = [{0, aligned(buffer.nbytes, alignment)} for buffer in program.buffers]
        ranges: list[tuple[int, int]] = []
        for tensor in program.tensors:
            low, high = tensor.offset // alignment * alignment, aligned(tensor.offset + tensor.nbytes, alignment)
            ranges.append((low, high))
            if tensor.buffer is not None:
                cuts[tensor.buffer].update((low, high))
        ordered = list(map(sorted, cuts))
        self._of_buffer: list[range] = []
        self.buffers: list[int] = []
        self.lowers: list[int] = []
        self.sizes: list[int] = []
        for buffer, each in enumerate(ordered):
            first = len(self.buffers)
            for low, high in zip(each, each[1:] or [0]):  # an empty buffer is a part as well
                self.buffers.append(buffer)
                self.lowers.append(low)
                self.sizes.append(high - low)
            self._of_buffer.append(range(first, len(self.buffers)))
        self._of_tensor = [
            range(0)
            if tensor.buffer is None
            else _parts_under(ordered[tensor.buffer], self._of_buffer[tensor.buffer], *ends)
            for tensor, ends in zip(program.tensors, ranges, strict=True)
        ]

    def of(self, tensors: Sequence[int]) -> tuple[int, ...]:
        """Return the distinct parts under `tensors`, in order.

        An empty tensor has the part at its offset. Weights have none.
        """
        return tuple(dict.fromkeys(chain.from_iterable(self._of_tensor[tensor] for tensor in tensors)))

    def of_buffer(self, buffer: int) -> range:
        """Return the parts of a buffer, from its first byte on."""
        return self._of_buffer[buffer]

    @cached_property
    def lives(self) -> tuple[Lifetime, ...]:
        """Return the lifetime of each part, from first to last use."""
        return _lives(self._program, len(self.buffers), self.of)

    def live_bytes(self) -> list[int]:
        """Sum the parts alive at each step; one entry for a program without steps."""
        return sum_alive(self.sizes, self.lives, timeline(self._program))

    def working_sets(self) -> list[int]:
        """Sum the parts that each step reads or writes."""
        return [sum(self.sizes[part] for part in self.of((*each.reads, *each.writes))) for each in self._program.steps]


def _parts_under(cuts: list[int], parts: range, low: int, high: int) -> range:
    """Return the parts of a buffer under the bytes `[low, high)`."""
    if len(parts) == 1:
        return parts
    first = min(bisect_left(cuts, low), len(parts) - 1)
    return parts[first : max(bisect_left(cuts, high), first + 1)]


def _lives(program: Program, count: int, of: Callable[[tuple[int, ...]], Sequence[int]]) -> tuple[Lifetime, ...]:
    given, kept = (of(tuple(port.tensor for port in ports)) for ports in (program.inputs, program.outputs))
    touched = (of((*step.reads, *step.writes)) for step in program.steps)
    return lives_of(count, given, touched, kept, timeline(program))


def live_bytes(program: Program, alignment: int = 1) -> list[int]:
    """Sum the bytes alive at each step; one entry for a program without steps.

    Parts of buffers are rounded outwards to `alignment`.
    """
    return BufferParts(program, alignment).live_bytes()


def bound(program: Program, alignment: int = ALIGNMENT) -> int:
    """Return the most bytes alive at one step: no arena of this order can be smaller."""
    return max(live_bytes(program, alignment))


def floor(program: Program, alignment: int = ALIGNMENT) -> int:
    """Return the largest working set of one kernel, in bytes: no order needs less. 0 without steps."""
    return max(BufferParts(program, alignment).working_sets(), default=0)


def shared_floor(program: Program) -> int:
    """Return a lower bound for every order and every sharing of buffers, in bytes.

    Operands that may be stored in results are, and copies go away. Operands of copies count for nothing: two of them may be
    the same bytes. Nothing is rounded up: parts of a buffer need not be aligned.
    """
    return max(shared_floors(program), default=0)


def shared_floors(program: Program) -> list[int]:
    """Return by step the bytes it needs for every order and every sharing of buffers; see `shared_floor`."""
    copying = [step for step in program.steps if step.copies]
    copied = {buffer for step in copying for buffer in program.buffers_of(step.reads + step.writes)}

    def nbytes(buffers: set[int]) -> int:
        return sum(program.buffers[buffer].nbytes for buffer in buffers)

    def needed(step: Step) -> int:
        if step.copies:
            return 0
        inside = set(program.buffers_of(tuple(step.reads[overlay.read] for overlay in step.in_place))) - copied
        written = set(program.buffers_of(step.writes))
        outside = set(program.buffers_of(step.reads)) - inside - written - copied
        return nbytes(outside) + max(nbytes(inside), nbytes(written))

    return [needed(step) for step in program.steps]


def ports_floor(program: Program, alignment: int = ALIGNMENT) -> int:
    """Return the bytes of the inputs alone, or of the outputs alone, whichever is more.

    No sharing, order, split or repeat goes below. Inputs are alive together before step 0, outputs after the last step.
    Ports that sharing may put side by side into one buffer are rounded up together. Of outputs that steps copy only the
    largest counts, since one may hold the others.
    """
    beside, copied = _placed_by_sharing(program), set[int]()
    for step in program.steps:
        if step.copies:
            copied.update(program.buffers_of((*step.reads, *step.writes)))

    def nbytes(buffers: Iterable[int], held: Iterable[int] = ()) -> int:
        sizes = {buffer: program.buffers[buffer].nbytes for buffer in buffers}
        largest = max((program.buffers[buffer].nbytes for buffer in held), default=0)
        apart = sum(aligned(size, alignment) for buffer, size in sizes.items() if buffer not in beside)
        return apart + aligned(largest + sum(size for buffer, size in sizes.items() if buffer in beside), alignment)

    outputs = program.output_buffers()
    return max(nbytes(program.input_buffers()), nbytes(outputs - copied, outputs & copied))


def _placed_by_sharing(program: Program) -> set[int]:
    """Collect the buffers that sharing may put at any offset inside another buffer.

    Steps copy them or place them at an offset, or they may share memory with such a buffer.
    """
    links = []
    placed: set[int] = set()
    for step in program.steps:
        buffers = program.buffers_of((*step.reads, *step.writes))
        if step.copies or any(overlay.shift for overlay in step.in_place) or len(step.in_place) > 1:
            placed.update(buffers)
        elif step.in_place:
            links.append(set(buffers))
    before = -1
    while len(placed) != before:
        before = len(placed)
        for link in links:
            if link & placed:
                placed |= link
    return placed
