"""Find the ONNX nodes behind each weight."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from .program import Program, Step


def nodes_of_weights(program: Program) -> dict[int, tuple[str, ...]]:
    """Map each weight that a kernel reads, by number, to the ONNX nodes of all kernels that read it, in order."""
    found: dict[int, dict[str, None]] = defaultdict(dict)
    for owner, step in _steps(program):
        for weight in (owner.tensors[tensor].weight for tensor in step.reads):
            if weight is not None:
                found[weight].update(dict.fromkeys(step.nodes))
    return {weight: tuple(nodes) for weight, nodes in found.items()}


def _steps(program: Program) -> Iterator[tuple[Program, Step]]:
    """Yield the kernels' steps with the program around each, and loops that read a weight slice by slice."""
    for owner, step, _ in program.calls():
        yield owner, step
    for step in program.steps:
        yield program, step
