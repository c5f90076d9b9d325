"""Put the workspaces of kernels into a program: buffers that only one step uses, planned like any other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from .program import Buffer, Loop, Program, Step, Tensor


def add_workspaces(program: Program, sizes: Mapping[str, Sequence[int]]) -> Program:
    """Give each step the workspaces of its kernel as the last of its `writes`; `sizes` are in bytes, by kernel."""
    tensors, buffers, steps = list(program.tensors), list(program.buffers), []
    for step in program.steps:
        for piece, nbytes in enumerate(sizes.get(step.kernel, ())):
            step = replace(step, writes=(*step.writes, len(tensors)), workspaces=step.workspaces + 1)
            tensors.append(Tensor((nbytes,), "uint8", buffer=len(buffers)))
            buffers.append(Buffer(_name(step, piece), nbytes))
        steps.append(step)
    return replace(program, steps=tuple(steps), tensors=tuple(tensors), buffers=tuple(buffers))


def _name(step: Step, piece: int) -> str:
    """Name a workspace after the ring of rows that it is, or after its step."""
    rings = (
        [each.name for n, each in enumerate(step.body.buffers) if n in step.rings and step.pieces[n] == piece]
        if isinstance(step, Loop)
        else []
    )
    return f"rows of {rings[0]}" if rings else f"workspace of {step.kernel}"


def drop_workspaces(program: Program) -> Program:
    """Undo `add_workspaces`, as long as nothing has come after it."""
    count = sum(step.workspaces for step in program.steps)
    if not count:
        return program
    steps = tuple(replace(step, writes=step.results, workspaces=0) for step in program.steps)
    return replace(program, steps=steps, tensors=program.tensors[:-count], buffers=program.buffers[:-count])


def workspaces_of_loops(program: Program) -> dict[str, list[int]]:
    """Return the bytes of the workspaces of the loops in a planned program, as `add_workspaces` takes them."""
    return {
        step.kernel: [program.tensors[tensor].nbytes for tensor in step.writes[len(step.results) :]]
        for step in program.steps
        if isinstance(step, Loop)
    }


def largest_workspace(program: Program) -> int:
    """Return the bytes of the largest workspace in a program."""
    own = (tensor for step in program.steps for tensor in step.writes[len(step.results) :])
    return max((program.tensors[tensor].nbytes for tensor in own), default=0)
