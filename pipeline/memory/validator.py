"""Checks an arena plan against the program it is for. Shares no code with the planner, and is O(n²) on purpose.

A plan that passes is safe to run: at no step do two buffers that hold something share a byte, and what lies on one
buffer is read before it is overwritten.
"""

from __future__ import annotations

from ..errors import PlanError
from ..graph import Program
from .arena import ArenaPlan
from .contents import check_contents


def validate_plan(program: Program, plan: ArenaPlan, alignment: int) -> None:
    """Raises PlanError, naming buffers, steps and offsets in bytes, if `plan` breaks a rule or claims what is not so.

    The rules: one offset for each buffer, aligned and not negative; every buffer inside the arena, as are the bytes
    up to the next multiple of `alignment`; buffers that are alive at a common step are apart; nothing is read before
    it is written, or after it is overwritten; a kernel writes over what it reads only where it may; and bound, floor
    and proved are what they are said to be.
    """
    _check_offsets(program, plan, alignment)
    _check_reads(program)
    spans = _spans(program)
    _check_apart(program, plan, spans, alignment)
    check_contents(program, plan)
    _check_claims(program, plan, spans, alignment)


def _check_offsets(program: Program, plan: ArenaPlan, alignment: int) -> None:
    if len(plan.offsets) != len(program.buffers):
        raise PlanError(
            f"The plan of '{program.name}' has {len(plan.offsets)} offsets for {len(program.buffers)} buffers."
        )
    for buffer, offset in zip(program.buffers, plan.offsets, strict=True):
        if offset < 0 or offset % alignment:
            raise PlanError(f"Buffer '{buffer.name}' is at offset {offset}, not a multiple of {alignment}.")
        if offset + _padded(buffer.nbytes, alignment) > plan.arena:
            raise PlanError(
                f"Buffer '{buffer.name}' of {buffer.nbytes} bytes at offset {offset} "
                f"ends outside the arena of {plan.arena} bytes."
            )


def _check_reads(program: Program) -> None:
    """Replays the steps: what is read must have been written, by the caller or by an earlier step, and must fit."""
    for tensor in program.tensors:
        if tensor.buffer is not None and tensor.offset + tensor.nbytes > program.buffers[tensor.buffer].nbytes:
            name = program.buffers[tensor.buffer].name
            raise PlanError(
                f"A tensor of {tensor.nbytes} bytes at byte {tensor.offset} does not fit into its buffer '{name}'."
            )
    written = {program.tensors[port.tensor].buffer for port in program.inputs}
    for number, step in enumerate(program.steps):
        for read in step.reads:
            buffer = program.tensors[read].buffer
            if buffer is not None and buffer not in written:
                name = program.buffers[buffer].name
                raise PlanError(f"Step {number} ({step.kernel}) reads buffer '{name}' before anything wrote it.")
        written.update(program.tensors[write].buffer for write in step.writes)
    for port in program.outputs:
        buffer = program.tensors[port.tensor].buffer
        if buffer is not None and buffer not in written:
            raise PlanError(f"Nothing writes output '{port.name}'.")


def _spans(program: Program) -> list[tuple[int, int] | None]:
    """The first and the last step at which each buffer must keep its bytes, both included; None if it never has any."""
    uses: list[list[int]] = [[] for _ in program.buffers]
    for port in program.inputs:
        _use(program, uses, port.tensor, 0)
    for number, step in enumerate(program.steps):
        for tensor in step.reads + step.writes:
            _use(program, uses, tensor, number)
    for port in program.outputs:
        _use(program, uses, port.tensor, len(program.steps) - 1 if program.steps else 0)
    return [(min(numbers), max(numbers)) if numbers else None for numbers in uses]


def _use(program: Program, uses: list[list[int]], tensor: int, step: int) -> None:
    buffer = program.tensors[tensor].buffer
    if buffer is not None:
        uses[buffer].append(step)


def _check_apart(program: Program, plan: ArenaPlan, spans: list[tuple[int, int] | None], alignment: int) -> None:
    rows = [
        (span[0], span[1], plan.offsets[number], plan.offsets[number] + _padded(buffer.nbytes, alignment), number)
        for number, (buffer, span) in enumerate(zip(program.buffers, spans, strict=True))
        if span is not None and buffer.nbytes > 0
    ]
    for position, (first, last, low, high, number) in enumerate(rows):
        for other_first, other_last, other_low, other_high, other in rows[position + 1 :]:
            if low < other_high and other_low < high and first <= other_last and other_first <= last:
                raise PlanError(
                    f"Buffers '{program.buffers[number].name}' (steps {first} to {last}, bytes {low} to {high}) and "
                    f"'{program.buffers[other].name}' (steps {other_first} to {other_last}, bytes {other_low} to "
                    f"{other_high}) share memory while both are alive."
                )


def _check_claims(program: Program, plan: ArenaPlan, spans: list[tuple[int, int] | None], alignment: int) -> None:
    most = [0] * max(1, len(program.steps))
    for buffer, span in zip(program.buffers, spans, strict=True):
        if span is not None:
            for step in range(span[0], span[1] + 1):
                most[step] += _padded(buffer.nbytes, alignment)
    if plan.bound != max(most):
        raise PlanError(f"The plan says its bound is {plan.bound}, but {max(most)} bytes are alive at one step.")
    largest = 0
    for step in program.steps:
        touched = {program.tensors[tensor].buffer for tensor in step.reads + step.writes} - {None}
        largest = max(largest, sum(_padded(program.buffers[b].nbytes, alignment) for b in touched if b is not None))
    if plan.floor != largest:
        raise PlanError(f"The plan says its floor is {plan.floor}, but the largest kernel works on {largest} bytes.")
    if plan.proved != (plan.arena == plan.bound):
        raise PlanError(f"The plan says proved={plan.proved} of an arena of {plan.arena} and a bound of {plan.bound}.")


def _padded(nbytes: int, alignment: int) -> int:
    return (nbytes + alignment - 1) // alignment * alignment
