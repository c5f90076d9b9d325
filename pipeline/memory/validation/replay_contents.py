"""Replay a plan over the bytes of its arena: each read must find its own value. Part of the validator.

Shares no code with the merging of buffers, and is O(n²) on purpose.
"""

from __future__ import annotations

from ...errors import PlanError
from ...program import Program
from ..placement.plan_arena import ArenaPlan


def check_contents(program: Program, plan: ArenaPlan) -> None:
    """Check that the last writer of each byte is the one its reader expects. Raises PlanError."""
    log = [port.tensor for port in program.inputs]
    for number, step in enumerate(program.steps):
        for place, read in enumerate(step.reads):
            _check_last_writers(program, plan, log, read, f"Step {number} ({step.kernel})")
            for result in range(len(step.writes)):
                _check_meeting(program, plan, number, place, result)
        for result, write in enumerate(step.writes):
            for other in step.writes[:result]:
                if _meet(_bytes(program, plan, write), _bytes(program, plan, other)):
                    raise PlanError(f"Step {number} ({step.kernel}) writes two results to the same bytes.")
        log.extend(step.writes)
    for port in program.outputs:
        _check_last_writers(program, plan, log, port.tensor, f"Output '{port.name}'")


def _check_last_writers(program: Program, plan: ArenaPlan, log: list[int], tensor: int, who: str) -> None:
    buffer = program.tensors[tensor].buffer
    if buffer is None:
        return
    name = program.buffers[buffer].name
    for start, end, wanted in _writers_of(program, plan, tensor, _bytes(program, plan, tensor)):
        left = [(start, end)]
        for written in reversed(log):
            low, high = _bytes(program, plan, written)
            if any(_meet(part, (low, high)) for part in left):
                if written != wanted:
                    raise PlanError(
                        f"{who} reads bytes {start} to {end} of the arena, buffer '{name}', "
                        f"after tensor {written} is written there."
                    )
                left = [(a, b) for c, d in left for a, b in ((c, min(d, low)), (max(c, high), d)) if a < b]
            if not left:
                break
        else:
            raise PlanError(f"{who} reads buffer '{name}' before anything wrote it: tensor {wanted} is missing.")


def _writers_of(program: Program, plan: ArenaPlan, tensor: int, within: tuple[int, int]) -> list[tuple[int, int, int]]:
    """List the written tensors behind the bytes `within`, as (start, end, tensor).

    Steps or the caller wrote them; `tensor` and its views are followed to their sources.
    """
    views = [view for view in program.views if view.tensor == tensor]
    if not views:
        return [(*within, tensor)] if within[0] < within[1] else []
    found = []
    for view in views:
        low, high = _bytes(program, plan, view.source)
        if low != _bytes(program, plan, tensor)[0] + view.shift:
            raise PlanError(f"Tensor {tensor} is a view of tensor {view.source}, but lies elsewhere.")
        common = max(low, within[0]), min(high, within[1])
        if common[0] < common[1]:
            found += _writers_of(program, plan, view.source, common)
    if sum(end - start for start, end, _ in found) != within[1] - within[0]:
        raise PlanError(f"Tensor {tensor} is a view that shows less than it covers.")
    return found


def _check_meeting(program: Program, plan: ArenaPlan, number: int, place: int, result: int) -> None:
    """Check that a step overwrites an operand only as its kernel allows.

    The kernel must read each element just before it writes there. Raises PlanError.
    """
    step = program.steps[number]
    read, write = program.tensors[step.reads[place]], program.tensors[step.writes[result]]
    if read.buffer is None:
        return
    source, target = (_bytes(program, plan, tensor) for tensor in (step.reads[place], step.writes[result]))
    shifts = [overlay.shift for overlay in step.in_place if (overlay.read, overlay.write) == (place, result)]
    if _meet(source, target) and source[0] - target[0] not in shifts:
        names = program.buffers[read.buffer].name, program.buffers[write.buffer_number].name
        raise PlanError(f"Step {number} ({step.kernel}) writes '{names[1]}' over '{names[0]}', which it still reads.")


def _bytes(program: Program, plan: ArenaPlan, tensor: int) -> tuple[int, int]:
    """Return the half-open byte range of a tensor in the arena."""
    what = program.tensors[tensor]
    start = plan.offsets[what.buffer_number] + what.offset
    return start, start + what.nbytes


def _meet(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return max(one[0], other[0]) < min(one[1], other[1])
