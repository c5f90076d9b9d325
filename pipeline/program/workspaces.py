"""Put the workspaces of kernels into a program: buffers that only one step uses, planned like any other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from .program import Buffer, Program, Tensor


def with_workspaces(program: Program, sizes: Mapping[str, int]) -> Program:
    """Give each step its kernel's workspace as the last of its `writes`; `sizes` are in bytes, by kernel."""
    tensors, buffers, steps = list(program.tensors), list(program.buffers), []
    for step in program.steps:
        nbytes = sizes.get(step.kernel, 0)
        if nbytes:
            step = replace(step, writes=(*step.writes, len(tensors)), workspace=True)
            tensors.append(Tensor((nbytes,), "uint8", buffer=len(buffers)))
            buffers.append(Buffer(f"workspace of {step.kernel}", nbytes))
        steps.append(step)
    return replace(program, steps=tuple(steps), tensors=tuple(tensors), buffers=tuple(buffers))


def without_workspaces(program: Program) -> Program:
    """Undo `with_workspaces`, as long as nothing has come after it."""
    count = sum(step.workspace for step in program.steps)
    if not count:
        return program
    steps = tuple(replace(step, writes=step.results, workspace=False) for step in program.steps)
    return replace(program, steps=steps, tensors=program.tensors[:-count], buffers=program.buffers[:-count])


def largest_workspace(program: Program) -> int:
    """Return the bytes of the largest workspace in a program."""
    return max((program.tensors[step.writes[-1]].nbytes for step in program.steps if step.workspace), default=0)
