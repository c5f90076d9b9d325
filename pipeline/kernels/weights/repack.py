"""Repack weights at compile time into the layout a kernel reads; never keep a second copy.

weight[..., f, ...] ─► weight[f / width, ..., f % width]      `width` neighbours of dimension f side by side
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...program import Loop, Program
from ...program.bodies import loops_of
from ...tir.tensor_values import array_digest
from .deferred_weights import DeferredWeights


@dataclass(frozen=True)
class Repack:
    """Split dimension `dimension` of parameter `parameter` into blocks of `width`, which divides its extent.

    With `inner`, each `inner` neighbours are a group, repacked alone (see rules/axes/split_groups.py). With `lanes`, which do
    not divide its `extent`, the dimension is taken in whole vectors first: the last one starts `lanes` before the end.
    """

    parameter: int
    dimension: int
    width: int
    inner: int = 0
    extent: int = 0
    lanes: int = 0

    @property
    def rounded(self) -> int:
        """Return the extent of the dimension in whole vectors."""
        return self.extent + -self.extent % self.lanes

    def index_map(self, *indices):
        """Return the new indices of an element; for `Schedule.transform_layout`."""
        if self.inner:
            at = self.dimension
            group, place = indices[at] // self.inner, indices[at] % self.inner
            return self._in_groups().index_map(*indices[:at], group, place, *indices[at + 1 :])
        moved = indices[self.dimension]
        if self.lanes:  # elements that the last vector alone has
            moved = moved + moved // (self.rounded - self.lanes) * (self.rounded - self.extent)
        rest = [*indices[: self.dimension], *indices[self.dimension + 1 :]]
        return [moved // self.width, *rest, moved % self.width]

    def shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the repacked shape of the parameter."""
        if self.inner:
            return self._in_groups().shape(self._grouped(shape))
        rest = (*shape[: self.dimension], *shape[self.dimension + 1 :])
        extent = self.rounded if self.lanes else shape[self.dimension]
        return (extent // self.width, *rest, self.width)

    def apply(self, array: np.ndarray) -> np.ndarray:
        if self.inner:
            return self._in_groups().apply(array.reshape(self._grouped(array.shape)))
        moved = np.moveaxis(array, self.dimension, 0)
        if self.lanes:
            at = np.arange(self.rounded)
            moved = moved[np.minimum(at // self.lanes * self.lanes, self.extent - self.lanes) + at % self.lanes]
        blocks = moved.reshape(moved.shape[0] // self.width, self.width, *moved.shape[1:])
        return np.ascontiguousarray(np.moveaxis(blocks, 1, -1))

    def _in_groups(self) -> Repack:
        """Return the repack of the parameter with an axis of groups before the dimension."""
        return replace(self, dimension=self.dimension + 1, inner=0)

    def _grouped(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        groups = shape[self.dimension] // self.inner
        return (*shape[: self.dimension], groups, self.inner, *shape[self.dimension + 1 :])


def repackable_parameters(program: Program) -> dict[str, frozenset[int]]:
    """Find, per kernel, the parameters whose layout may be chosen.

    Each always binds a weight that nothing else reads, that has one shape and is not an output of the model.
    """
    readers: dict[int, set[tuple[str, int]]] = defaultdict(set)
    shapes: dict[int, set[tuple[int, ...]]] = defaultdict(set)
    constant: dict[str, set[int]] = {}
    bound: dict[tuple[str, int], set[int]] = defaultdict(set)
    handed_out = {program.tensors[port.tensor].weight for port in program.outputs} | _sliced(program)
    for owner, step, _ in program.calls():
        weights = {n for n, tensor in enumerate(step.reads) if owner.tensors[tensor].weight is not None}
        constant[step.kernel] = constant.get(step.kernel, weights) & weights
        for number in weights:
            tensor = owner.tensors[step.reads[number]]
            readers[tensor.weight_number].add((step.kernel, number))
            shapes[tensor.weight_number].add(tensor.shape)
            bound[step.kernel, number].add(tensor.weight_number)

    def is_private(parameter: tuple[str, int]) -> bool:
        return all(
            readers[weight] == {parameter} and len(shapes[weight]) == 1 and weight not in handed_out
            for weight in bound[parameter]
        )

    return {
        kernel: frozenset(number for number in sorted(numbers) if is_private((kernel, number)))
        for kernel, numbers in constant.items()
    }


def _sliced(program: Program) -> set[int | None]:
    """Collect the weights that loops read slice by slice."""
    return {
        each.tensors[step.reads[window.place]].weight
        for each in _programs(program)
        for step in each.steps
        if isinstance(step, Loop)
        for window in step.windows
        if window.place < len(step.reads)
    }


def free_weights(program: Program, fixed: frozenset[str]) -> frozenset[int]:
    """Find the weights, by number, free to be repacked.

    Each has one shape wherever it is read, is neither an output nor a view's source, and no kernel of `fixed` reads it.
    """
    shapes: dict[int, set[tuple[int, ...]]] = defaultdict(set)
    taken = {program.tensors[port.tensor].weight for port in program.outputs} | _sliced(program)
    for each in _programs(program):
        for tensor in each.tensors:
            if tensor.weight is not None:
                shapes[tensor.weight].add(tensor.shape)
        taken |= {each.tensors[view.source].weight for view in each.views}
    taken |= {
        owner.tensors[tensor].weight
        for owner, step, _ in program.calls()
        if step.kernel in fixed
        for tensor in step.reads
    }
    return frozenset({weight for weight, different in shapes.items() if len(different) == 1} - taken)


def repack_weights(
    program: Program, arrays: Sequence[np.ndarray], repacks: Mapping[str, tuple[Repack, ...]]
) -> tuple[Program, Sequence[np.ndarray]]:
    """Return `program` and its weights, repacked as kernels ask; see `repackable_parameters`."""
    chosen = {}
    for owner, step, _ in program.calls():
        for repack in repacks.get(step.kernel, ()):
            chosen[owner.tensors[step.reads[repack.parameter]].weight_number] = repack
    return repack_by_number(program, arrays, chosen)


def repack_by_number(
    program: Program, arrays: Sequence[np.ndarray], chosen: Mapping[int, Repack]
) -> tuple[Program, Sequence[np.ndarray]]:
    """Return `program` and its weights, with the weights in `chosen` repacked.

    Deferred weights stay deferred: their digests then name the repacks instead of the bytes.
    """
    if not chosen:
        return program, arrays
    deferred = isinstance(arrays, DeferredWeights)
    packed = DeferredWeights(lambda: _packed(arrays, chosen), len(arrays)) if deferred else _packed(arrays, chosen)
    digests = {
        n: _renamed(program.weights[n].digest, repack) if deferred else array_digest(packed[n])
        for n, repack in chosen.items()
    }
    weights = list(program.weights)
    program = _reshaped(program, chosen)
    for tensor in (tensor for each in _programs(program) for tensor in each.tensors):
        if tensor.weight in chosen:
            n = tensor.weight_number
            weights[n] = replace(weights[n], nbytes=tensor.nbytes, digest=digests[n])
    return replace(program, weights=tuple(weights)), packed


def _reshaped(program: Program, chosen: Mapping[int, Repack]) -> Program:
    """Return the program, and the bodies of its loops, with tensors of the new shapes of weights."""
    tensors = tuple(
        replace(each, shape=chosen[each.weight_number].shape(each.shape)) if each.weight in chosen else each
        for each in program.tensors
    )
    steps = tuple(
        replace(each, body=_reshaped(each.body, chosen)) if isinstance(each, Loop) else each for each in program.steps
    )
    return replace(program, tensors=tensors, steps=steps)


def _programs(program: Program) -> list[Program]:
    """List a program, and the bodies of its loops."""
    return [program, *(loop.body for _, loop in loops_of(program))]


def _packed(arrays: Sequence[np.ndarray], chosen: Mapping[int, Repack]) -> tuple[np.ndarray, ...]:
    return tuple(chosen[n].apply(array) if n in chosen else array for n, array in enumerate(arrays))


def _renamed(digest: str, repack: Repack) -> str:
    return hashlib.sha256(f"{digest} {repack}".encode()).hexdigest()
