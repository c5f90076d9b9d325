"""Estimate the memory of a float model with its layers quantised to int8, from its lowered program.

A float32 activation takes a byte an element then, and so does a weight of two axes or more; biases become int32. The program
keeps its order, its sharing and its splits. What kernels of integers need besides is not known.
"""

from __future__ import annotations

from dataclasses import replace

from ..program import Program, Tensor
from ..program.program import DTYPE_BYTES

_FLOAT = "float32"
#: bytes of a float32, for one of an int8
_RATIO = DTYPE_BYTES[_FLOAT] // DTYPE_BYTES["int8"]


def is_float(program: Program) -> bool:
    """Tell whether most bytes of the weights, or without weights of the activations, are float32."""
    tensors = [each for each in program.tensors if each.weight is not None] or program.tensors
    return 2 * sum(each.nbytes for each in tensors if each.dtype == _FLOAT) > sum(each.nbytes for each in tensors)


def as_integers(program: Program) -> Program:
    """Return the program with float32 activations, workspaces and weights at a quarter of their bytes.

    Memory that other dtypes share keeps its size.
    """
    own = {tensor for step in program.steps for tensor in step.writes[len(step.results) :]}
    made = [_quarter(each, number in own) for number, each in enumerate(program.tensors)]
    kept = {each.buffer for each, other in zip(program.tensors, made) if each is other}
    tensors = tuple(each if each.buffer in kept else other for each, other in zip(program.tensors, made))
    large = {each.weight for each in program.tensors if each.dtype == _FLOAT and len(each.shape) > 1}
    buffers = (each if number in kept else replace(each, nbytes=_part(each.nbytes)) for number, each in enumerate(program.buffers))
    weights = (replace(each, nbytes=_part(each.nbytes)) if number in large else each for number, each in enumerate(program.weights))
    return replace(program, tensors=tensors, buffers=tuple(buffers), weights=tuple(weights))


def _quarter(tensor: Tensor, is_workspace: bool) -> Tensor:
    """Return a tensor at a quarter of its bytes; itself if it is neither float32 nor a workspace."""
    if is_workspace:
        return replace(tensor, shape=(_part(tensor.nbytes),))
    return replace(tensor, dtype="int8", offset=tensor.offset // _RATIO) if tensor.dtype == _FLOAT else tensor


def _part(nbytes: int) -> int:
    return -(-nbytes // _RATIO)
