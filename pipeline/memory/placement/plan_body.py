"""Plan the buffers of a loop's body: one block per dtype, for a compiler takes arrays of other dtypes to lie elsewhere.

    for t:                                    float32                          int8
        a = x[t] · W      512 bytes           0 ┌───────┐                      0 ┌───┐
        b = softmax(a)    512 bytes             │ a, b  │ b lies where a does    │ q │
        q = quantize(b)   128 bytes         512 └───────┘                    128 └───┘

The body is a program of its own: a step for each of its kernels, over the values between them. Its order, its sharing
and its plan are those of any program, and the same validator checks them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ...program import Program
from ..liveness import ALIGNMENT
from ..order.best_order import beam_order
from ..sharing.share import share
from .plan_arena import ArenaPlan, plan_arena


@dataclass(frozen=True)
class BodyPlan:
    """Steps of a body in their order, and a plan of the buffers of each dtype, those of others empty."""

    program: Program
    plans: dict[str, ArenaPlan]

    @property
    def nbytes(self) -> int:
        """Return the bytes of all blocks."""
        return sum(plan.arena for plan in self.plans.values())

    def offset(self, tensor: int) -> int:
        """Return the offset of a tensor in the block of its dtype, in bytes."""
        found = self.program.tensors[tensor]
        assert found.buffer is not None
        return self.plans[found.dtype].offsets[found.buffer] + found.offset


def plan_body(program: Program, alignment: int = ALIGNMENT) -> BodyPlan:
    """Plan a body in the order, and with the sharing, of least memory; as it is given where nothing is lower.

    Steps may share tensors of one dtype only.
    """
    return min((_placed(each, alignment) for each in _arranged(program, alignment)), key=lambda each: each.nbytes)


def _arranged(program: Program, alignment: int) -> Iterator[Program]:
    """Yield the program as given and in its best order, both with and without sharing."""
    shared = share(program, alignment=alignment)
    for each in (program, shared):
        yield each
        yield each.reordered(beam_order(each, alignment=alignment).order)


def _placed(program: Program, alignment: int) -> BodyPlan:
    return BodyPlan(program, {dtype: plan_arena(only_dtype(program, dtype), alignment) for dtype in dtypes_of(program)})


def dtypes_of(program: Program) -> list[str]:
    """List the dtypes of a body's values."""
    return sorted({tensor.dtype for tensor in program.tensors if tensor.nbytes})


def only_dtype(program: Program, dtype: str) -> Program:
    """Return the program with all tensors of other dtypes empty."""
    other = {tensor.buffer for tensor in program.tensors if tensor.dtype != dtype}
    buffers = tuple(replace(buffer, nbytes=0) if number in other else buffer for number, buffer in enumerate(program.buffers))
    tensors = tuple(replace(tensor, shape=(0,)) if tensor.dtype != dtype else tensor for tensor in program.tensors)
    return replace(program, buffers=buffers, tensors=tensors)
