"""Check that a program is well formed; every reader of programs relies on it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from .program import DTYPE_BYTES, Buffer, Loop, Program, Step, Tensor, Weight, Window


def first_problem(program: Program) -> str | None:
    """Return the first problem of `program`, in words, or None.

    A well-formed program refers only to tensors, buffers and weights it has. Each tensor is a window on exactly one
    buffer or weight, of a known dtype, and fits into it. Inputs and results are buffers. Views are on their sources,
    and never on themselves. Nothing is read, or handed out, before it is written. Bodies of loops are well formed too,
    with the weights of the program around; their windows stay within operands and results in every trip.
    """
    return next(_problems(program), None)


def _problems(program: Program) -> Iterator[str]:
    items: tuple[Buffer | Weight, ...] = (*program.buffers, *program.weights)
    for item in items:
        if item.nbytes < 0:
            yield f"'{item.name}' has {item.nbytes} bytes"
    for number, tensor in enumerate(program.tensors):
        yield from (f"tensor {number} {problem}" for problem in _tensor_problems(program, tensor))
    yield from _port_problems(program)
    yield from _view_problems(program)
    written = set(program.input_buffers())
    for number, step in enumerate(program.steps):
        yield from (f"step {number} ({step.kernel}) {problem}" for problem in _step_problems(program, step, written))
        written.update(program.buffers_of(step.writes))
        if isinstance(step, Loop):
            yield from (
                f"the body of step {number} ({step.kernel}): {problem}" for problem in _loop_problems(program, step)
            )
    for port in program.outputs:
        if program.tensors[port.tensor].weight is None and program.tensors[port.tensor].buffer not in written:
            yield f"nothing writes output '{port.name}'"


def _port_problems(program: Program) -> Iterator[str]:
    for port in (*program.inputs, *program.outputs):
        if not 0 <= port.tensor < len(program.tensors):
            yield f"'{port.name}' is tensor {port.tensor}, which does not exist"
    for port in program.inputs:
        if program.tensors[port.tensor].buffer is None:
            yield f"input '{port.name}' is a weight"


def _view_problems(program: Program) -> Iterator[str]:
    sources: dict[int, set[int]] = {}
    for view in program.views:
        if not (0 <= view.tensor < len(program.tensors) and 0 <= view.source < len(program.tensors)):
            yield f"a view of tensor {view.source} as tensor {view.tensor} does not exist"
        elif not _lies_on(program.tensors[view.tensor], program.tensors[view.source], view.shift):
            yield f"tensor {view.tensor} is a view of tensor {view.source}, but lies elsewhere"
        sources.setdefault(view.tensor, set()).add(view.source)
    for tensor in sources:
        seen, waiting = set(), {tensor}
        while waiting:
            seen |= waiting
            waiting = {source for each in waiting for source in sources.get(each, ())}
            if tensor in waiting:
                yield f"tensor {tensor} is a view of itself"
                return
            waiting -= seen


def _lies_on(tensor: Tensor, source: Tensor, shift: int) -> bool:
    """Tell whether a view is on its source at `shift`."""
    return tensor.buffer is not None and tensor.buffer == source.buffer and source.offset == tensor.offset + shift


def _tensor_problems(program: Program, tensor: Tensor) -> Iterator[str]:
    if (tensor.buffer is None) == (tensor.weight is None):
        yield "must have either a buffer or a weight"
        return
    number, known = (tensor.weight, program.weights) if tensor.buffer is None else (tensor.buffer, program.buffers)
    if number is None or not 0 <= number < len(known):
        yield f"refers to number {number} of {len(known)}"
    elif tensor.dtype not in DTYPE_BYTES:
        yield f"has the unknown dtype '{tensor.dtype}'"
    elif any(extent < 0 for extent in tensor.shape):
        yield f"has the shape {tensor.shape}"
    elif tensor.offset < 0 or tensor.offset % DTYPE_BYTES[tensor.dtype] or (tensor.offset and tensor.buffer is None):
        yield f"is at byte {tensor.offset} of '{known[number].name}'"
    elif tensor.offset + tensor.nbytes > known[number].nbytes:
        yield f"has {tensor.nbytes} bytes, more than '{known[number].name}' it is a window on"


def _step_problems(program: Program, step: Step, written: set[int]) -> Iterator[str]:
    for tensor in (*step.reads, *step.writes):
        if not 0 <= tensor < len(program.tensors):
            yield f"uses tensor {tensor}, which does not exist"
            return
    if any(program.tensors[tensor].buffer is None for tensor in step.writes):
        yield "writes a weight"
    if not 0 <= step.workspaces <= len(step.writes):
        yield f"has {step.workspaces} workspaces, but writes {len(step.writes)} tensors"
    for overlay in (*step.in_place, *step.copies):
        if not (0 <= overlay.read < len(step.reads) and 0 <= overlay.write < len(step.writes)):
            yield f"lays read {overlay.read} over write {overlay.write}, which it does not have"
    for buffer in program.buffers_of(step.reads):
        if buffer not in written:
            yield f"reads '{program.buffers[buffer].name}' before anything wrote it"


def _loop_problems(program: Program, loop: Loop) -> Iterator[str]:
    if loop.trips < 1:
        yield f"it has {loop.trips} trips"
    for step in loop.body.steps:
        guard = step.guard
        if guard is not None and (min(guard.period, guard.groups) < 1 or guard.offset < 0 or guard.end > loop.trips):
            yield f"'{step.kernel}' runs {guard.groups} times from trip {guard.offset} on, every {guard.period}, of {loop.trips}"
    yield from _problems(replace(loop.body, weights=program.weights))
    around = (*loop.reads, *loop.results)
    known = range(len(loop.body.tensors))
    for window in loop.windows:
        if window.tensor not in known or not 0 <= window.place < len(around):
            yield f"a window of tensor {window.tensor} on operand {window.place} does not exist"
        elif not _lies_within(
            window, loop.trips, loop.body.tensors[window.tensor], program.tensors[around[window.place]]
        ):
            yield f"tensor {window.tensor} leaves operand {window.place}"
    if any(each not in known for pair in loop.carries for each in pair):
        yield "it carries a tensor that does not exist"
    for word, places in (("offsets", loop.offsets), ("pieces", loop.pieces)):
        if places and len(places) != len(loop.body.buffers):
            yield f"it has {len(places)} {word} for {len(loop.body.buffers)} buffers"
    if any(not 0 <= piece < max(1, loop.workspaces) for piece in loop.pieces):
        yield f"a buffer is in a workspace it does not have, of {loop.workspaces}"


def _lies_within(window: Window, trips: int, tensor: Tensor, around: Tensor) -> bool:
    """Tell whether a window has its operand's dtype and stays within it in all trips."""
    starts = window.offset, window.offset + (trips - 1) * window.stride
    return tensor.dtype == around.dtype and min(starts) >= 0 and max(starts) + tensor.nbytes <= around.nbytes
