"""Plan the body of a loop: its buffers in the loop's workspace, and the operands that may be stored in its results.

    for t in 0 … 39:                          workspace
        a = x[t] · W      512 bytes           0 ┌───────┐
        b = softmax(a)    512 bytes             │ a, b  │ b lies where a does
        y[t] = b · V                        512 └───────┘ x[t] and y[t] lie outside

The body is a program: its order, its sharing and its plan are those of any program, and the same validator checks them.
A loop of rows runs in its own order, and each of its rings is a workspace of its own, which may be stored in any gap of the arena.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from ...program import Guard, Loop, Overlay, Program, Window
from ..order.best_order import beam_order
from ..sharing.share import share
from .plan_arena import ArenaPlan, plan_arena


@lru_cache(1 << 10)
def plan_loop(loop: Loop) -> tuple[Loop, tuple[int, ...]]:
    """Return the loop with its body in the order and sharing of least memory, and its workspace bytes.

    The body stays as it is where nothing is lower, and where rows are computed in turn. Loops inside have their plans already.
    """
    if loop.is_numbered:
        return _plan_rows(loop)
    loop = _next_states_in_place(loop)
    found = min(((each, plan_arena(each)) for each in _arrangements(_apart(loop))), key=lambda each: each[1].arena)
    planned = _fill_body(loop, *found)
    return replace(planned, in_place=tuple(_overlays(planned))), (found[1].arena,) if found[1].arena else ()


def _plan_rows(loop: Loop) -> tuple[Loop, tuple[int, ...]]:
    """Plan a loop of rows: rings one after the other, then the values of one trip, which share memory."""
    inner, rings = loop.inner, sorted(loop.rings)
    tensors = tuple(replace(each, shape=(0,), offset=0) if each.buffer in rings else each for each in inner.tensors)
    buffers = tuple(replace(each, nbytes=0) if number in rings else each for number, each in enumerate(inner.buffers))
    plan = plan_arena(replace(inner, tensors=tensors, buffers=buffers))
    values = max((offset + each.nbytes for offset, each in zip(plan.offsets, buffers) if each.nbytes), default=0)
    pieces = tuple(
        rings.index(number) if number in rings else len(rings) if each.nbytes else 0
        for number, each in enumerate(buffers)
    )
    sizes = [inner.buffers[ring].nbytes for ring in rings]
    return replace(loop, offsets=plan.offsets, pieces=pieces), (*sizes, values) if values else tuple(sizes)


def _next_states_in_place(loop: Loop) -> Loop:
    """Make the next state in place of the present one, if its maker may write there."""
    for carry in loop.carries:
        found = _step_copying_state(loop, *carry)
        if found is not None:
            loop = _drop_state_copy(loop, *carry, found)
    return loop


def _step_copying_state(loop: Loop, first: int, last: int) -> int | None:
    """Return the number of the step that copies a value whose maker last reads the old state."""
    body = loop.body
    makers = {tensor: number for number, step in enumerate(body.steps) for tensor in step.writes}
    copy = body.steps[makers[last]]
    source = copy.reads[0] if copy.copies == (Overlay(0, 0),) and len(copy.reads) == 1 else None
    if source is None or copy.guard is not None or source not in makers or makers[source] > makers[last]:
        return None
    shared = sum(each.buffer == body.tensors[source].buffer for each in body.tensors) > 1
    if (
        shared
        or body.tensors[source].buffer in loop.outside
        or body.tensors[source].nbytes != body.tensors[last].nbytes
    ):
        return None
    maker = body.steps[makers[source]]
    write = maker.writes.index(source)
    late = any(first in step.reads or last in step.reads for step in body.steps[makers[source] + 1 :])
    reads = (Overlay(read, write) for read, tensor in enumerate(maker.reads) if tensor == first)
    return (
        None if late or maker.guard is not None or any(each not in maker.in_place for each in reads) else makers[last]
    )


def _drop_state_copy(loop: Loop, first: int, last: int, copy: int) -> Loop:
    """Return the loop without the step `copy` of a state: its source is stored there."""
    body, source = loop.body, loop.body.steps[copy].reads[0]
    emptied = body.tensors[source].buffer
    moved = replace(body.tensors[source], buffer=body.tensors[last].buffer)
    ports = tuple(replace(port, tensor=source) if port.tensor == last else port for port in body.outputs)
    body = replace(
        body, steps=body.steps[:copy] + body.steps[copy + 1 :], outputs=ports,
        tensors=tuple(moved if number == source else each for number, each in enumerate(body.tensors)),
        buffers=tuple(replace(each, nbytes=0) if number == emptied else each for number, each in enumerate(body.buffers)),
    )  # fmt: skip
    windows = tuple(replace(each, tensor=source) if each.tensor == last else each for each in loop.windows)
    carries = tuple((first, source) if each == (first, last) else each for each in loop.carries)
    return replace(loop, body=body, windows=windows, carries=carries)


def _apart(loop: Loop) -> Program:
    """Return the inner body, in which only tensors of the workspace may share memory."""
    body = loop.inner

    def inside(tensors: tuple[int, ...], place: int) -> bool:
        return body.tensors[tensors[place]].buffer not in loop.outside

    steps = []
    for step in body.steps:
        kept = tuple(
            each for each in step.in_place if inside(step.reads, each.read) and inside(step.writes, each.write)
        )
        copies = (
            step.copies
            if all(inside(step.reads, each.read) and inside(step.writes, each.write) for each in step.copies)
            else ()
        )
        steps.append(replace(step, in_place=kept, copies=copies))
    return replace(body, steps=tuple(steps))


def _arrangements(program: Program) -> Iterator[Program]:
    """Yield the program as given and in its best order, both with and without sharing."""
    for each in (program, share(program)):
        yield each
        yield each.reordered(beam_order(each).order)


def _fill_body(loop: Loop, inner: Program, plan: ArenaPlan) -> Loop:
    """Return the loop with the planned body `inner`, and its outer buffers in their size again."""
    before = {(step.kernel, step.writes): step for step in loop.body.steps}
    steps = tuple(
        replace(step, in_place=own.in_place, copies=own.copies)
        for step in inner.steps
        for own in (before[step.kernel, step.writes],)
    )
    outside = {window.tensor for window in loop.windows}
    tensors = tuple(
        replace(each, shape=loop.body.tensors[n].shape) if n in outside else each
        for n, each in enumerate(inner.tensors)
    )
    sizes = {each.buffer: loop.body.tensors[n].nbytes for n, each in enumerate(tensors) if n in outside}
    buffers = tuple(replace(each, nbytes=sizes.get(n, each.nbytes)) for n, each in enumerate(inner.buffers))
    return replace(loop, body=replace(inner, steps=steps, tensors=tensors, buffers=buffers), offsets=plan.offsets)


class _Use(NamedTuple):
    """Uses of an operand or a result: its windows, the steps that read it, and those that write it."""

    windows: tuple[Window, ...]
    reads: tuple[int, ...]
    writes: tuple[int, ...]


def _overlays(loop: Loop) -> Iterator[Overlay]:
    """Yield the operands of a loop that may be stored in a result; see `program.Step`."""
    reads, results = len(loop.reads), len(loop.results)
    uses = [_use(loop, place) for place in range(reads + results)]
    for read, operand in enumerate(uses[:reads]):
        for write, result in enumerate(uses[reads:]):
            shift = _shift(loop, operand, result)
            if shift is not None:
                yield Overlay(read, write, shift)


def _use(loop: Loop, place: int) -> _Use:
    windows = tuple(window for window in loop.windows if window.place == place)
    tensors = {window.tensor for window in windows}
    reads, writes = (
        tuple(number for number, step in enumerate(loop.body.steps) if not tensors.isdisjoint(group(step)))
        for group in (lambda step: step.reads, lambda step: step.writes)
    )
    return _Use(windows, reads, writes)


def _shift(loop: Loop, operand: _Use, result: _Use) -> int | None:
    """Return the bytes from the start of a result to an operand in its place."""
    steps, tensors = loop.body.steps, loop.body.tensors
    if not operand.reads or not result.writes or operand.writes:
        return None
    (ours, theirs) = (each.windows[0] for each in (operand, result))
    if tensors[ours.tensor].dtype != tensors[theirs.tensor].dtype:
        return None
    last, first = operand.reads[-1], result.writes[0]
    equal = tensors[ours.tensor].nbytes == tensors[theirs.tensor].nbytes
    if last > first or (last == first and not (equal and _takes_turns(loop, last, operand, result))):
        return None
    if all(steps[number].guard == Guard() for number in operand.reads):
        return 0 if equal and not ours.stride and not theirs.stride else None
    if any(steps[number].guard is not None for number in (*operand.reads, *result.reads, *result.writes)):
        return None
    if any(len({(each.offset, each.stride) for each in use.windows}) > 1 for use in (operand, result)):
        return None
    if ours.stride * theirs.stride <= 0:
        return None
    # the end that both reach last is the same for both
    more = (abs(theirs.stride) - abs(ours.stride)) * loop.trips
    return max(more, 0) if ours.stride > 0 else min(more, 0)


def _takes_turns(loop: Loop, number: int, operand: _Use, result: _Use) -> bool:
    """Return whether a step reads each element of an operand only to write the one in its place."""
    step = loop.body.steps[number]
    mine, theirs = ({window.tensor for window in use.windows} for use in (operand, result))
    return all(
        Overlay(read, write) in step.in_place
        for read, tensor in enumerate(step.reads)
        for write, other in enumerate(step.writes)
        if tensor in mine and other in theirs
    )
