"""Check the loops of a program: their bodies in the workspace, and operands and results trip by trip. Part of the validator."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from ...errors import PlanError
from ...program import Loop, Overlay, Program, Window
from ..placement.plan_arena import ArenaPlan


def workspace_plan(program: Program, loop: Loop, alignment: int) -> ArenaPlan:
    """Return the plan of a loop's body in its workspaces, as if they followed each other; it claims nothing.

    Raises PlanError for a buffer that leaves its own.
    """
    starts, end = {}, 0
    for tensor in loop.writes[len(loop.results) :]:
        starts[tensor], end = end, end + -(-program.tensors[tensor].nbytes // alignment) * alignment
    offsets = list(loop.offsets)
    for number, (buffer, offset) in enumerate(zip(loop.body.buffers, loop.offsets)):
        if number in loop.outside or not buffer.nbytes or offset % alignment:
            continue
        own = loop.workspace_of(number) if loop.workspaces else None
        if own is None or offset < 0 or offset + buffer.nbytes > program.tensors[own].nbytes:
            raise PlanError(
                f"Buffer '{buffer.name}' at offset {offset} ends outside the workspace of loop '{loop.kernel}'."
            )
        offsets[number] += starts[own]
    return ArenaPlan(tuple(offsets), end, 0, 0, False)


def trip_plan(program: Program, loop: Loop, alignment: int) -> ArenaPlan:
    """Return the plan of a loop's body in one trip: buffers outside are behind the workspace, apart from each other."""
    inner = workspace_plan(program, loop, alignment)
    offsets, end = list(inner.offsets), inner.arena
    for buffer in sorted(loop.outside):
        offsets[buffer], end = end, end + loop.body.buffers[buffer].nbytes
    return ArenaPlan(tuple(offsets), end, 0, 0, False)


def check_trips(program: Program, plan: ArenaPlan, loop: Loop, outside: frozenset[int] = frozenset()) -> None:
    """Replay a loop outside of its workspace. Raises PlanError naming the loop and its operand.

    The rules: steps write only results, and all of each, unless its buffer is one of `outside`: then the loop around
    may write the rest; a trip reads what it or the one before wrote as that tensor; and no trip overwrites what it, or a
    later one, still reads. Rows that kernels compute in turn are replayed one by one by `validate_region`, before there are
    kernels for them.
    """
    for step in loop.body.steps:
        for tensor in step.writes:
            own = [window for window in loop.windows if window.tensor == tensor]
            if loop.body.tensors[tensor].buffer in loop.outside and not any(
                window.place >= len(loop.reads) for window in own
            ):
                raise PlanError(f"Loop '{loop.kernel}' writes tensor {tensor} of its body, which is not a result.")
    _check_results(program, loop, outside)
    if loop.is_numbered:
        return
    _check_carried(loop)
    for operand in (window for window in loop.windows if window.place < len(loop.reads)):
        for result in (window for window in loop.windows if window.place >= len(loop.reads)):
            _check_apart(program, plan, loop, operand, result)


def _check_results(program: Program, loop: Loop, outside: frozenset[int]) -> None:
    """Check that the trips write each byte of each result, or keep the operand's in its place."""
    for place, result in enumerate(loop.results, len(loop.reads)):
        if program.tensors[result].buffer in outside:
            continue
        end = 0
        for first, last in sorted(_bytes_written(loop, place)):
            end = max(end, last) if first <= end else end
        if end < program.tensors[result].nbytes:
            raise PlanError(f"Loop '{loop.kernel}' does not write all of its result {place - len(loop.reads)}.")


def _bytes_written(loop: Loop, place: int) -> Iterator[tuple[int, int]]:
    """Yield the half-open byte ranges that trips write, or leave in place, in a result."""
    views = {view.tensor for view in loop.body.views}
    for window in loop.windows:
        if window.place != place:
            continue
        parts = {(0, loop.body.tensors[window.tensor].nbytes)} if window.tensor in views else set()
        for step in loop.body.steps:
            for number, tensor in enumerate(step.writes):
                if tensor == window.tensor:
                    parts |= set(
                        _bytes_written(step, len(step.reads) + number)
                        if isinstance(step, Loop)
                        else [(0, loop.body.tensors[tensor].nbytes)]
                    )
        for trip in range(loop.trips if window.stride else 1):
            start = window.offset + trip * window.stride
            yield from ((start + first, start + last) for first, last in parts)


def _check_carried(loop: Loop) -> None:
    """Run two trips: each read of a tensor outside finds what was last written there as that tensor."""
    body = loop.body
    given: dict[int, set[int]] = {}
    for port in body.inputs:
        given.setdefault(body.tensors[port.tensor].buffer_number, set()).add(port.tensor)
    sliced = {body.tensors[window.tensor].buffer for window in loop.windows if window.stride}
    held = {buffer: set(tensors) for buffer, tensors in given.items()}
    for trip in range(min(loop.trips, 2)):
        for step in body.steps:
            if not step.runs_in(trip):
                continue
            for tensor in step.reads:
                buffer = body.tensors[tensor].buffer
                if buffer in loop.outside and held.get(buffer, set()).isdisjoint(_sources_of(body, tensor)):
                    raise PlanError(
                        f"'{step.kernel}' of loop '{loop.kernel}' reads tensor {tensor} in trip {trip}, which is not there."
                    )
            for read, write in product(range(len(step.reads)), range(len(step.results))):
                own, other = (body.tensors[each].buffer for each in (step.reads[read], step.writes[write]))
                if own == other and own in loop.outside and Overlay(read, write) not in step.in_place:
                    raise PlanError(
                        f"'{step.kernel}' of loop '{loop.kernel}' writes over its operand {read}, which it may still read."
                    )
            held |= {body.tensors[tensor].buffer_number: {tensor} for tensor in step.writes}
        held |= {buffer: set(tensors) for buffer, tensors in given.items() if buffer in sliced}
        for first, last in loop.carries:
            buffer = body.tensors[first].buffer
            if buffer is None or body.tensors[last].buffer != buffer:
                raise PlanError(f"Loop '{loop.kernel}' carries tensor {last} as tensor {first}, which lies elsewhere.")
            held[buffer] = {first if tensor == last else tensor for tensor in held.get(buffer, ())}


def _sources_of(body: Program, tensor: int) -> set[int]:
    """Collect a tensor and its sources, as far as views go."""
    found = {tensor}
    for view in body.views:
        if view.tensor == tensor:
            found |= _sources_of(body, view.source)
    return found


def _check_apart(program: Program, plan: ArenaPlan, loop: Loop, operand: Window, result: Window) -> None:
    """Check that a result overwrites an operand only after its last read."""
    around = (*loop.reads, *loop.results)
    whole = [program.tensors[around[window.place]] for window in (operand, result)]
    if any(each.buffer is None for each in whole):
        return
    starts = [plan.offsets[each.buffer_number] + each.offset for each in whole]
    ends = [start + each.nbytes for start, each in zip(starts, whole)]
    if max(starts) >= min(ends):
        return
    for read, reader in enumerate(loop.body.steps):
        for write, writer in enumerate(loop.body.steps):
            if operand.tensor not in reader.reads or result.tensor not in writer.writes:
                continue
            for trip in filter(writer.runs_in, range(loop.trips)):
                low, high = _bytes(loop, result, starts[1], trip)
                # trips that read after this write: of the later ones, the next and the last are nearest
                after = [trip] if read >= write else []
                after += [each for each in (trip + 1, loop.trips - 1) if trip < each < loop.trips]
                for each in filter(reader.runs_in, after):
                    start, end = _bytes(loop, operand, starts[0], each)
                    allowed = (
                        each == trip and read == write and start == low and _takes_turns(loop, read, operand, result)
                    )
                    if max(low, start) < min(high, end) and not allowed:
                        raise PlanError(
                            f"Trip {trip} of loop '{loop.kernel}' writes its result over operand {operand.place}, which trip {each} still reads."
                        )


def _takes_turns(loop: Loop, number: int, operand: Window, result: Window) -> bool:
    """Return whether a step may write this result in place of each operand that is this one."""
    step = loop.body.steps[number]
    allowed = {(each.read, each.write) for each in step.in_place if not each.shift}
    return all(
        (read, write) in allowed
        for read, tensor in enumerate(step.reads)
        for write, other in enumerate(step.writes)
        if tensor == operand.tensor and other == result.tensor
    )


def _bytes(loop: Loop, window: Window, start: int, trip: int) -> tuple[int, int]:
    """Return the half-open byte range of a window in the arena."""
    first = start + window.offset + trip * window.stride
    return first, first + loop.body.tensors[window.tensor].nbytes
