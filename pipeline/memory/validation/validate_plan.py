"""Check an arena plan against its program. Shares no code with the planner, and is O(n²) on purpose.

A plan that passes is safe to run: no two buffers that hold data at one step share a byte, and every tensor on a shared
buffer is read before it is overwritten.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import accumulate, pairwise

from ...errors import PlanError
from ...program import Loop, Program, Tensor
from ..placement.plan_arena import ArenaPlan
from .replay_contents import check_contents


def validate_plan(program: Program, plan: ArenaPlan, alignment: int) -> None:
    """Check the rules and the claims of `plan`. Raises PlanError naming buffers, steps and byte offsets.

    The rules: one offset for each buffer, aligned and not negative; every buffer inside the arena, as are the bytes
    up to the next multiple of `alignment`; banks fill the arena, and no buffer crosses from one into the next; parts of buffers that are alive at a common step are apart; nothing is read
    before it is written, or after it is overwritten; a kernel writes over its operand only as allowed; bodies of loops
    keep these rules in their workspace, trip by trip; and bound, floor and proved are true.
    """
    parts = _check_rules(program, plan, alignment)
    _check_banks(program, plan, alignment)
    check_contents(program, plan)
    _check_claims(program, plan, parts)


def _check_rules(program: Program, plan: ArenaPlan, alignment: int) -> list[_Part]:
    """Check the places of buffers, in bodies of loops too; return the parts of the program's buffers."""
    _check_offsets(program, plan, alignment)
    _check_sizes(program)
    parts = _parts(program, alignment)
    _check_apart(program, plan, parts)
    for step in program.steps:
        if isinstance(step, Loop):
            _check_rules(step.inner, _plan_inside(program, plan, step, alignment), alignment)
    return parts


def _plan_inside(program: Program, plan: ArenaPlan, loop: Loop, alignment: int) -> ArenaPlan:
    """Return the places of the buffers in a loop's workspaces. Raises PlanError for one that leaves its own."""
    offsets = list(loop.offsets)
    for number, (buffer, offset) in enumerate(zip(loop.body.buffers, loop.offsets)):
        if number in loop.outside or not buffer.nbytes or offset % alignment:
            continue
        own = program.tensors[loop.workspace_of(number)] if loop.workspaces else None
        if own is None or offset < 0 or offset + buffer.nbytes > own.nbytes:
            raise PlanError(
                f"Buffer '{buffer.name}' at offset {offset} ends outside the workspace of loop '{loop.kernel}'."
            )
        offsets[number] += plan.offsets[own.buffer_number] + own.offset
    return replace(plan, offsets=tuple(offsets))


def _check_offsets(program: Program, plan: ArenaPlan, alignment: int) -> None:
    if len(plan.offsets) != len(program.buffers):
        raise PlanError(
            f"The plan of '{program.name}' has {len(plan.offsets)} offsets for {len(program.buffers)} buffers."
        )
    for buffer, offset in zip(program.buffers, plan.offsets, strict=True):
        if offset < 0 or offset % alignment:
            raise PlanError(f"Buffer '{buffer.name}' is at offset {offset}, not a multiple of {alignment}.")
        if offset + _pad(buffer.nbytes, alignment) > plan.arena:
            raise PlanError(
                f"Buffer '{buffer.name}' of {buffer.nbytes} bytes at offset {offset} "
                f"ends outside the arena of {plan.arena} bytes."
            )


def _check_banks(program: Program, plan: ArenaPlan, alignment: int) -> None:
    """Check that banks fill the arena in order, and no bank ends inside a buffer."""
    if not plan.banks:
        return
    ends = list(accumulate(bank.size for bank in plan.banks))
    if ends[-1] != plan.arena or any(bank.size <= 0 or bank.size % alignment for bank in plan.banks):
        sizes = ", ".join(f"{bank.region} {bank.size}" for bank in plan.banks)
        raise PlanError(
            f"The banks of '{program.name}' ({sizes} bytes) are not parts of an arena of {plan.arena} bytes."
        )
    if len({bank.region for bank in plan.banks}) < len(plan.banks):
        raise PlanError(f"Two banks of '{program.name}' are in one memory.")
    for buffer, offset in zip(program.buffers, plan.offsets, strict=True):
        for bank, end in zip(plan.banks, ends, strict=True):
            if offset < end < offset + _pad(buffer.nbytes, alignment):
                raise PlanError(
                    f"Buffer '{buffer.name}' of {buffer.nbytes} bytes at offset {offset} crosses the end of bank {bank.region} at {end}."
                )


def _check_sizes(program: Program) -> None:
    """Check that every tensor fits its buffer."""
    for tensor in program.tensors:
        if tensor.buffer is not None and tensor.offset + tensor.nbytes > program.buffers[tensor.buffer].nbytes:
            name = program.buffers[tensor.buffer].name
            raise PlanError(
                f"A tensor of {tensor.nbytes} bytes at byte {tensor.offset} does not fit into its buffer '{name}'."
            )


@dataclass(frozen=True)
class _Part:
    """Bytes `low` to `high` of a buffer, kept from step `first` to `last`.

    `kernels` are the steps that use them; the caller is not one.
    """

    buffer: int
    low: int
    high: int
    first: int
    last: int
    kernels: frozenset[int]


def _parts(program: Program, alignment: int) -> list[_Part]:
    """List the used parts of each buffer, cut at its tensors' ends, rounded outwards."""
    uses: list[list[_Use]] = [[] for _ in program.buffers]
    end = len(program.steps) - 1 if program.steps else 0
    ports = [(port.tensor, 0) for port in program.inputs] + [(port.tensor, end) for port in program.outputs]
    touched = [(tensor, number) for number, step in enumerate(program.steps) for tensor in step.reads + step.writes]
    for group, by_kernel in ((ports, False), (touched, True)):
        for tensor, step in group:
            what = program.tensors[tensor]
            if what.buffer is not None:
                uses[what.buffer].append((step, by_kernel, *_range(what, alignment)))
    cuts = [{0, _pad(buffer.nbytes, alignment)} for buffer in program.buffers]
    for each in program.tensors:
        if each.buffer is not None:
            cuts[each.buffer].update(_range(each, alignment))
    found = []
    for buffer, (ends, used) in enumerate(zip(cuts, uses, strict=True)):
        for low, high in pairwise(sorted(ends)):
            steps = [(step, by_kernel) for step, by_kernel, start, stop in used if start < high and low < stop]
            if steps:
                kernels = frozenset(step for step, by_kernel in steps if by_kernel)
                found.append(_Part(buffer, low, high, min(steps)[0], max(steps)[0], kernels))
    return found


#: step, True for its kernel or False for the caller, first byte, end
_Use = tuple[int, bool, int, int]


def _range(tensor: Tensor, alignment: int) -> tuple[int, int]:
    return tensor.offset - tensor.offset % alignment, _pad(tensor.offset + tensor.nbytes, alignment)


def _check_apart(program: Program, plan: ArenaPlan, parts: list[_Part]) -> None:
    rows = [
        (
            part.first,
            part.last,
            plan.offsets[part.buffer] + part.low,
            plan.offsets[part.buffer] + part.high,
            part.buffer,
        )
        for part in parts
    ]
    for position, (first, last, low, high, number) in enumerate(rows):
        for other_first, other_last, other_low, other_high, other in rows[position + 1 :]:
            if low < other_high and other_low < high and first <= other_last and other_first <= last:
                raise PlanError(
                    f"Buffers '{program.buffers[number].name}' (steps {first} to {last}, bytes {low} to {high}) and "
                    f"'{program.buffers[other].name}' (steps {other_first} to {other_last}, bytes {other_low} to "
                    f"{other_high}) share memory while both are alive."
                )


def _check_claims(program: Program, plan: ArenaPlan, parts: list[_Part]) -> None:
    most = [0] * max(1, len(program.steps))
    touched = [0] * max(1, len(program.steps))
    for part in parts:
        for step in range(part.first, part.last + 1):
            most[step] += part.high - part.low
        for step in part.kernels:
            touched[step] += part.high - part.low
    if plan.bound != max(most):
        raise PlanError(f"The plan says its bound is {plan.bound}, but {max(most)} bytes are alive at one step.")
    if plan.floor != max(touched):
        raise PlanError(
            f"The plan says its floor is {plan.floor}, but the largest kernel works on {max(touched)} bytes."
        )
    if plan.proved != (plan.arena == plan.bound):
        raise PlanError(f"The plan says proved={plan.proved} of an arena of {plan.arena} and a bound of {plan.bound}.")


def _pad(nbytes: int, alignment: int) -> int:
    return (nbytes + alignment - 1) // alignment * alignment
