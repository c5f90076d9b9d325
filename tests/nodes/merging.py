"""Many lowered models as one, so that one C library computes them all: building one for each would take minutes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from passfit.memory import ArenaPlan, BufferParts, plan_arena
from passfit.program import Buffer, Loop, Port, Program, Step, Tensor, View, Weight

if TYPE_CHECKING:
    from passfit.kernels.lower.lower import Lowered


def merge(parts: Sequence[Lowered]) -> Lowered:
    """The steps of every part, one part after the other; kernels and ports are prefixed with the part's number."""
    steps: list[Step] = []
    tensors: list[Tensor] = []
    buffers: list[Buffer] = []
    weights: list[Weight] = []
    arrays: list[np.ndarray] = []
    inputs: list[Port] = []
    outputs: list[Port] = []
    views: list[View] = []
    kernels = {}
    for number, part in enumerate(parts):
        program, base, first = part.program, len(tensors), (len(buffers), len(weights))
        steps += [_moved(step, number, base, first[1]) for step in program.steps]
        tensors += [_shifted(tensor, *first) for tensor in program.tensors]
        buffers += program.buffers
        weights += program.weights
        arrays += part.weights
        inputs += [_port(port, number, base) for port in program.inputs]
        outputs += [_port(port, number, base) for port in program.outputs]
        views += [replace(view, tensor=view.tensor + base, source=view.source + base) for view in program.views]
        kernels |= {f"p{number}_{name}": kernel for name, kernel in part.kernels.items()}
    merged = Program("merged", *map(tuple, (steps, tensors, buffers, weights, inputs, outputs, views)))
    from passfit.kernels.lower.lower import Lowered

    return Lowered(merged, kernels, tuple(arrays))


def plan_parts(parts: Sequence[Lowered], merged: Program, alignment: int) -> ArenaPlan:
    """The plans of all parts, one behind the other: to place a thousand buffers together takes ten seconds."""
    offsets: list[int] = []
    arena = 0
    for part in parts:
        plan = plan_arena(part.program, alignment)
        offsets += [arena + offset for offset in plan.offsets]
        arena += plan.arena
    found = BufferParts(merged, alignment)
    least = max(found.live_bytes())
    return ArenaPlan(tuple(offsets), arena, least, max(found.working_sets(), default=0), arena == least)


def port_name(number: int, name: str) -> str:
    """What an input or output of part `number` is called in the merged program."""
    return f"p{number}_{name}"


def _port(port: Port, number: int, base: int) -> Port:
    return Port(port_name(number, port.name), port.tensor + base)


def _moved(step: Step, number: int, base: int, first_weight: int) -> Step:
    reads, writes = (tuple(tensor + base for tensor in group) for group in (step.reads, step.writes))
    moved = replace(step, kernel=f"p{number}_{step.kernel}", reads=reads, writes=writes)
    if not isinstance(moved, Loop):
        return moved
    body = moved.body  # tensors of a body have numbers of their own, its weights those of the program around
    steps = tuple(_moved(each, number, 0, first_weight) for each in body.steps)
    return replace(
        moved, body=replace(body, steps=steps, tensors=tuple(_shifted(each, 0, first_weight) for each in body.tensors))
    )


def _shifted(tensor: Tensor, first_buffer: int, first_weight: int) -> Tensor:
    if tensor.buffer is not None:
        return replace(tensor, buffer=tensor.buffer + first_buffer)
    return replace(tensor, weight=(tensor.weight or 0) + first_weight)
