"""Count the bytes that a run moves to and from each buffer and weight: the faster memory is worth most to the busiest."""

from __future__ import annotations

from ...program import Loop, Program


def traffic(program: Program) -> tuple[list[int], list[int]]:
    """Return the bytes moved per run, by buffer and by weight.

    A step moves each of its tensors once, however often its kernel reads an element; a loop does so in each trip.
    """
    buffers, weights = [0] * len(program.buffers), [0] * len(program.weights)
    for tensor, nbytes in zip(program.tensors, _bytes_by_tensor(program, 1), strict=True):
        if tensor.buffer is not None:
            buffers[tensor.buffer] += nbytes
    for owner, step, runs in program.calls():
        for tensor in (owner.tensors[number] for number in step.reads):
            if tensor.weight is not None:
                weights[tensor.weight] += tensor.nbytes * runs
    return buffers, weights


def _bytes_by_tensor(program: Program, trips: int) -> list[int]:
    """Return the bytes moved in `trips` runs of a program, by tensor."""
    moved = [0] * len(program.tensors)
    for step in program.steps:
        runs = trips if step.guard is None else step.guard.groups
        if not isinstance(step, Loop):
            for tensor in (*step.reads, *step.writes):
                moved[tensor] += program.tensors[tensor].nbytes * runs
            continue
        inside = _bytes_by_tensor(step.body, step.trips)
        for window in step.windows:
            moved[(*step.reads, *step.results)[window.place]] += inside[window.tensor] * runs
        for number, each in enumerate(step.body.tensors):
            if each.buffer is not None and each.buffer not in step.outside and step.workspaces:
                moved[step.workspace_of(each.buffer)] += inside[number] * runs
    return moved
