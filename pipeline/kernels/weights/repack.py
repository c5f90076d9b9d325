"""Weights in the layout a kernel reads them in, chosen at compile time: never a second copy of a weight.

weight[..., f, ...] ─► weight[f / width, ..., f % width]      `width` neighbours of dimension f side by side
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...program import Program


@dataclass(frozen=True)
class Repack:
    """Dimension `dimension` of parameter `parameter` in blocks of `width`, which divides its extent."""

    parameter: int
    dimension: int
    width: int

    def index_map(self, *indices):
        """The new indices of an element; for `Schedule.transform_layout`."""
        moved = indices[self.dimension]
        rest = [*indices[: self.dimension], *indices[self.dimension + 1 :]]
        return [moved // self.width, *rest, moved % self.width]

    def shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """What the shape of the parameter becomes."""
        rest = (*shape[: self.dimension], *shape[self.dimension + 1 :])
        return (shape[self.dimension] // self.width, *rest, self.width)

    def apply(self, array: np.ndarray) -> np.ndarray:
        moved = np.moveaxis(array, self.dimension, 0)
        blocks = moved.reshape(moved.shape[0] // self.width, self.width, *moved.shape[1:])
        return np.ascontiguousarray(np.moveaxis(blocks, 1, -1))


def repackable_parameters(program: Program) -> dict[str, frozenset[int]]:
    """For each kernel, the parameters that are always weights which nothing else reads, in the parameter's shape."""
    readers: dict[int, set[tuple[str, int]]] = defaultdict(set)
    shapes: dict[int, set[tuple[int, ...]]] = defaultdict(set)
    constant: dict[str, set[int]] = {}
    for step in program.steps:
        weights = {n for n, tensor in enumerate(step.reads) if program.tensors[tensor].weight is not None}
        constant[step.kernel] = constant.get(step.kernel, weights) & weights
        for number in weights:
            tensor = program.tensors[step.reads[number]]
            readers[tensor.weight].add((step.kernel, number))
            shapes[tensor.weight].add(tensor.shape)
    handed_out = {program.tensors[port.tensor].weight for port in program.outputs}

    def is_private(kernel: str, number: int) -> bool:
        return all(
            readers[weight] == {(kernel, number)} and len(shapes[weight]) == 1 and weight not in handed_out
            for step in program.steps
            if step.kernel == kernel
            for weight in (program.tensors[step.reads[number]].weight,)
        )

    return {
        kernel: frozenset(number for number in sorted(numbers) if is_private(kernel, number))
        for kernel, numbers in constant.items()
    }


def free_weights(program: Program, fixed: frozenset[str]) -> frozenset[int]:
    """The weights, by number, of one shape wherever they are read, not handed out, that no kernel of `fixed` reads."""
    shapes: dict[int, set[tuple[int, ...]]] = defaultdict(set)
    for tensor in program.tensors:
        if tensor.weight is not None:
            shapes[tensor.weight].add(tensor.shape)
    taken = {port.tensor for port in program.outputs} | {view.source for view in program.views}
    taken |= {tensor for step in program.steps if step.kernel in fixed for tensor in step.reads}
    found = {weight for weight, different in shapes.items() if len(different) == 1}
    return frozenset(found - {program.tensors[tensor].weight for tensor in taken})


def repack_weights(
    program: Program, arrays: Sequence[np.ndarray], repacks: Mapping[str, tuple[Repack, ...]]
) -> tuple[Program, tuple[np.ndarray, ...]]:
    """`program` and its weights in the layouts that kernels ask for; see `repackable_parameters`."""
    chosen = {}
    for step in program.steps:
        for repack in repacks.get(step.kernel, ()):
            chosen[program.tensors[step.reads[repack.parameter]].weight] = repack
    return repack_by_number(program, arrays, chosen)


def repack_by_number(
    program: Program, arrays: Sequence[np.ndarray], chosen: Mapping[int, Repack]
) -> tuple[Program, tuple[np.ndarray, ...]]:
    """`program` and its weights, those in `chosen` in the layout it says."""
    if not chosen:
        return program, tuple(arrays)
    packed = [chosen[n].apply(array) if n in chosen else array for n, array in enumerate(arrays)]
    weights = tuple(
        replace(weight, digest=hashlib.sha256(packed[n].tobytes()).hexdigest()) if n in chosen else weight
        for n, weight in enumerate(program.weights)
    )
    tensors = tuple(
        replace(tensor, shape=packed[tensor.weight].shape) if tensor.weight in chosen else tensor
        for tensor in program.tensors
    )
    return replace(program, weights=weights, tensors=tensors), tuple(packed)
