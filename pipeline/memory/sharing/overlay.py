"""Lay several tensors on one buffer, and check that each keeps its bytes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ...program import DTYPE_BYTES, Overlay, Program, Step

#: bytes `[start, end)` of a buffer, and the tensor that wrote them: a step's result, or the caller's input
WrittenBytes = tuple[int, int, int]


def overlay_operand(program: Program, step: Step, overlay: Overlay) -> Program | None:
    """Lay a read of `step` over a write, as `overlay` says; the smaller buffer moves into the larger.

    Where the read is shifted, the buffer grows as far as other tensors on the smaller one, alive at other times, ask for.
    Returns the same object if they are stored there already. Returns None if one is a weight, if neither buffer has room for
    the other, or if a moved tensor would be misaligned for its dtype. `keeps_contents` tells whether anything is then
    overwritten too early.
    """
    read, write = program.tensors[step.reads[overlay.read]], program.tensors[step.writes[overlay.write]]
    if read.buffer is None or write.buffer is None:
        return None
    shift = write.offset + overlay.shift - read.offset
    if read.buffer == write.buffer:
        return program if shift == 0 else None
    moved, kept = read.buffer, write.buffer
    if program.buffers[moved].nbytes > program.buffers[kept].nbytes:
        moved, kept, shift = kept, moved, -shift
    inner, outer = program.buffers[moved].nbytes, program.buffers[kept].nbytes
    before, behind = max(0, -shift), max(0, shift + inner - outer)
    if (before or behind) and not overlay.shift:
        return None
    places = {moved: shift + before, kept: before}
    tensors = tuple(
        replace(tensor, buffer=kept, offset=tensor.offset + places[tensor.buffer])
        if tensor.buffer in places
        else tensor
        for tensor in program.tensors
    )
    if any(tensor.offset % DTYPE_BYTES[tensor.dtype] for tensor in tensors if tensor.buffer == kept):
        return None
    buffers = tuple(
        replace(each, nbytes=before + outer + behind) if n == kept else each for n, each in enumerate(program.buffers)
    )
    return replace(program, tensors=tensors, buffers=buffers)


def drop_empty_buffers(program: Program) -> Program:
    """Remove the buffers that hold no tensor any more."""
    used = sorted({tensor.buffer for tensor in program.tensors if tensor.buffer is not None})
    number = {buffer: place for place, buffer in enumerate(used)}
    tensors = tuple(
        tensor if tensor.buffer is None else replace(tensor, buffer=number[tensor.buffer]) for tensor in program.tensors
    )
    return replace(program, tensors=tensors, buffers=tuple(program.buffers[buffer] for buffer in used))


def tensors_on(program: Program, buffer: int) -> frozenset[int]:
    """Collect the tensors on a buffer."""
    return frozenset(number for number, tensor in enumerate(program.tensors) if tensor.buffer == buffer)


def steps_accessing(program: Program, tensors: frozenset[int]) -> list[int]:
    """List the steps that read or write any of `tensors`."""
    return [
        number
        for number, step in enumerate(program.steps)
        if not (tensors.isdisjoint(step.reads) and tensors.isdisjoint(step.writes))
    ]


def keeps_contents(program: Program, buffer: int) -> bool:
    """Return whether every tensor on `buffer` holds its own bytes when read or handed out.

    Runs the steps in their order. A step may overwrite its operand only as its kernel allows.
    """
    contents = _Contents(program, buffer)
    contents.write(contents.on_buffer(tuple(port.tensor for port in program.inputs)))
    for step in (program.steps[number] for number in steps_accessing(program, tensors_on(program, buffer))):
        reads, writes = contents.on_buffer(step.reads), contents.on_buffer(step.writes)
        if not all(map(contents.holds, reads)) or not _may_run(program, step, reads, writes):
            return False
        contents.write(writes)
    return all(contents.holds(tensor) for tensor in contents.on_buffer(tuple(port.tensor for port in program.outputs)))


def _may_run(program: Program, step: Step, reads: list[int], writes: list[int]) -> bool:
    """Return whether results overlap operands only as the kernel allows, and never each other."""
    if any(_overlap(program, one, other) for number, one in enumerate(writes) for other in writes[:number]):
        return False
    allowed = {(each.read, each.write) for each in step.in_place if program.is_in_place(step, each)}
    return all(
        (place, result) in allowed
        for place, read in enumerate(step.reads)
        for result, write in enumerate(step.writes)
        if read in reads and write in writes and _overlap(program, read, write)
    )


def _overlap(program: Program, one: int, other: int) -> bool:
    """Return whether two tensors on one buffer share a byte."""
    (low, high), (start, end) = span(program, one), span(program, other)
    return max(low, start) < min(high, end)


def contents_of(program: Program, sources: dict[int, list[int]], tensor: int) -> Iterator[WrittenBytes]:
    """Yield the bytes of a tensor by their writer, seen through views; `sources` come from `program.views`."""
    low, high = span(program, tensor)
    if tensor not in sources:
        yield low, high, tensor
    for source in sources.get(tensor, ()):
        for start, end, root in contents_of(program, sources, source):
            if max(start, low) < min(end, high):
                yield max(start, low), min(end, high), root


def span(program: Program, tensor: int) -> tuple[int, int]:
    """Return the half-open byte range of a tensor in its buffer."""
    what = program.tensors[tensor]
    return what.offset, what.offset + what.nbytes


class _Contents:
    """Track the last writer of each byte of one buffer."""

    def __init__(self, program: Program, buffer: int):
        self._program, self._buffer = program, buffer
        self._sources: dict[int, list[int]] = {}
        for view in program.views:
            self._sources.setdefault(view.tensor, []).append(view.source)
        self._written: list[WrittenBytes] = []

    def on_buffer(self, tensors: tuple[int, ...]) -> list[int]:
        """Select the `tensors` that have bytes on the buffer."""
        known = self._program.tensors
        return [tensor for tensor in tensors if known[tensor].buffer == self._buffer and known[tensor].nbytes]

    def holds(self, tensor: int) -> bool:
        low, high = span(self._program, tensor)
        covered = 0
        for start, end, root in contents_of(self._program, self._sources, tensor):
            covered += end - start
            found = sum(max(0, min(end, above) - max(start, below)) for below, above, of in self._written if of == root)
            if found != end - start:
                return False
        return covered == high - low

    def write(self, tensors: list[int]) -> None:
        for tensor in tensors:
            low, high = span(self._program, tensor)
            left = [
                (start, end, of)
                for below, above, of in self._written
                for start, end in ((below, min(above, low)), (max(below, high), above))
                if start < end
            ]
            self._written = [*left, (low, high, tensor)]
