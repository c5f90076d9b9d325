"""Find the least arena and the least peak by trying everything: slow, obvious, independent of the planner."""

from __future__ import annotations

from functools import cache
from itertools import permutations

from passfit.program import Program, Tensor

Box = tuple[int, int, int]  # first step, last step (both included), size


def boxes(program: Program, alignment: int) -> list[Box]:
    """Return the lifetime and size of each buffer, read off the definition."""
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
    """Return the least height over all orders of dropping the boxes, each onto the boxes below.

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
    """Return the most bytes alive at one step."""
    return max(_alive_in_order(program, alignment, tuple(range(len(program.steps)))))


def _alive_in_order(program: Program, alignment: int, order: tuple[int, ...]) -> list[int]:
    return [_alive(program, alignment, frozenset(order[:n]), step) for n, step in enumerate(order or [-1])]


def _alive(program: Program, alignment: int, done: frozenset[int], step: int) -> int:
    """Return the bytes alive at a step, in whole aligned places of buffers; step -1 is the caller alone.

    A place is alive if it was touched before or now, and is touched now or later.
    """
    touched = [_places(program, call.reads + call.writes, alignment) for call in program.steps]
    inputs, outputs = (
        _places(program, tuple(port.tensor for port in ports), alignment) for ports in (program.inputs, program.outputs)
    )
    before = {place for other in done for place in touched[other]} | inputs
    later = {place for other, places in enumerate(touched) if other not in done for place in places} | outputs
    unread = set() if done else inputs
    now = touched[step] if step >= 0 else set()
    return len((before & later) | now | unread | (now & outputs)) * alignment


@cache
def _places(program: Program, tensors: tuple[int, ...], alignment: int) -> frozenset[tuple[int, int]]:
    found = [program.tensors[tensor] for tensor in tensors]
    return frozenset(
        (each.buffer, place)
        for each in found
        if each.buffer is not None
        for place in range(each.offset // alignment, -(-(each.offset + each.nbytes) // alignment))
    )


def least_peak(program: Program, alignment: int) -> int:
    """Return the least peak over all legal orders.

    Steps that meet in a byte, one of them writing it, keep their turn.
    """
    everything = range(len(program.steps))

    @cache
    def least(done: frozenset[int]) -> int:
        left = [step for step in everything if step not in done]
        free = [step for step in left if not any(_conflict(program, other, step) for other in left if other < step)]
        return min((max(_alive(program, alignment, done, step), least(done | {step})) for step in free), default=0)

    return least(frozenset()) if program.steps else peak(program, alignment)


def _conflict(program: Program, one: int, other: int) -> bool:
    first, second = program.steps[one], program.steps[other]
    pairs = [(a, b) for a in first.writes for b in second.reads + second.writes]
    pairs += [(a, b) for a in first.reads for b in second.writes]
    return any(_meet(program.tensors[a], program.tensors[b]) for a, b in pairs)


def _meet(one: Tensor, other: Tensor) -> bool:
    if one.buffer is None or one.buffer != other.buffer:
        return False
    low, high = max(one.offset, other.offset), min(one.offset + one.nbytes, other.offset + other.nbytes)
    return low < high or (one.offset, one.nbytes) == (other.offset, other.nbytes)
