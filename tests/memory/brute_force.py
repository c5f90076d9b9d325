"""The least arena and the least peak by trying everything: slow, obvious, and independent of the code under test."""

from __future__ import annotations

from itertools import permutations

from passfit.graph import Program

Box = tuple[int, int, int]  # first step, last step (both included), size


def boxes(program: Program, alignment: int) -> list[Box]:
    """When each buffer is alive and how large it is, read off the definition."""
    last = max(0, len(program.steps) - 1)
    inputs, outputs = program.input_buffers(), program.output_buffers()
    found = []
    for number, buffer in enumerate(program.buffers):
        uses = [
            step
            for step, call in enumerate(program.steps)
            if number in program.buffers_of(call.reads) + program.buffers_of(call.writes)
        ]
        if number in inputs:
            uses.append(0)
        if number in outputs:
            uses.append(last)
        if uses and buffer.nbytes:
            found.append((min(uses), max(uses), -(-buffer.nbytes // alignment) * alignment))
    return found


def least_arena(found: list[Box]) -> int:
    """The least height over all orders of dropping the boxes, each onto what is already below it.

    Pushing all boxes of a placement down leaves each on the ground or on another, so one of these orders is best.
    """
    best = sum(size for *_, size in found)
    for order in permutations(found):
        tops: dict[int, int] = {}
        for first, last, size in order:
            top = max(tops.get(step, 0) for step in range(first, last + 1)) + size
            tops.update(dict.fromkeys(range(first, last + 1), top))
        best = min(best, max(tops.values(), default=0))
    return best


def peak(program: Program, alignment: int) -> int:
    """The most bytes alive at one step."""
    found = boxes(program, alignment)
    return max(
        (
            sum(size for first, last, size in found if first <= step <= last)
            for step in range(max(1, len(program.steps)))
        ),
        default=0,
    )


def least_peak(program: Program, alignment: int) -> int:
    """The least peak over all orders in which every buffer is written before it is read."""
    best = peak(program, alignment)
    for order in permutations(range(len(program.steps))):
        written = set(program.input_buffers())
        for number in order:
            step = program.steps[number]
            if not written.issuperset(program.buffers_of(step.reads)):
                break
            written.update(program.buffers_of(step.writes))
        else:
            best = min(best, peak(program.reordered(order), alignment))
    return best
