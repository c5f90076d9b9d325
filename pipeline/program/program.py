"""The lowered function as plain data: kernels called in steps over buffers. No TVM, no ONNX.

    input ─┐
           ├─► step 0: conv2d_relu ──► buffer 1 ─► step 1: pool ──► buffer 2 ─► output
    weight ┘
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

#: bytes of one element
DTYPE_BYTES = {
    "bool": 1, "int8": 1, "uint8": 1, "int16": 2, "uint16": 2, "float16": 2, "bfloat16": 2,
    "int32": 4, "uint32": 4, "float32": 4, "int64": 8, "uint64": 8, "float64": 8,
}  # fmt: skip


@dataclass(frozen=True)
class Tensor:
    """A shaped window on a buffer, `offset` bytes into it, or on a weight: exactly one of the two is set.

    Several tensors may lie on one buffer: views, parts of a concatenation, results that took over an operand's memory.
    """

    shape: tuple[int, ...]
    dtype: str
    buffer: int | None = None
    weight: int | None = None
    offset: int = 0

    @cached_property
    def nbytes(self) -> int:
        return math.prod(self.shape) * DTYPE_BYTES[self.dtype]


@dataclass(frozen=True)
class Buffer:
    """One activation: memory that is written while the model runs (or by the caller, for an input)."""

    name: str
    nbytes: int


@dataclass(frozen=True)
class Weight:
    """One distinct constant, read-only; `digest` is the sha256 of its bytes. The bytes are kept beside the program."""

    name: str
    nbytes: int
    digest: str


@dataclass(frozen=True)
class Overlay:
    """A place of an operand in a result: byte b of read number `read` at byte b + `shift` of write number `write`."""

    read: int
    write: int
    shift: int = 0


@dataclass(frozen=True)
class Step:
    """One kernel call. `reads` and `writes` are tensor numbers, in the order of the kernel's arguments
    (reads first). `nodes` names the ONNX nodes the kernel computes, where that is known.

    `in_place`: each of these operands may lie in the result, since the kernel reads an element of it only to write the
    one that lies there. `copies`: with all of these operands where they say, the kernel would have nothing to do.
    """

    kernel: str
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    nodes: tuple[str, ...] = ()
    in_place: tuple[Overlay, ...] = ()
    copies: tuple[Overlay, ...] = ()


@dataclass(frozen=True)
class View:
    """Byte b of tensor `source` is byte b + `shift` of `tensor`, as far as that has one; they lie on one buffer.

    `elided`: a kernel would have copied it there, had memory not been shared.
    """

    tensor: int
    source: int
    shift: int = 0
    elided: bool = False


@dataclass(frozen=True)
class Port:
    """A named input or output of the model, with the tensor that holds it."""

    name: str
    tensor: int


@dataclass(frozen=True)
class Program:
    """A lowered model. Tensors, buffers and weights are referred to by their index; steps run in the order given.

    What no step writes, and is no input, is a view: `views` say of what.
    """

    name: str
    steps: tuple[Step, ...]
    tensors: tuple[Tensor, ...]
    buffers: tuple[Buffer, ...]
    weights: tuple[Weight, ...]
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    views: tuple[View, ...] = ()

    def buffers_of(self, tensors: tuple[int, ...]) -> tuple[int, ...]:
        """The distinct buffers behind `tensors`, in order; weights are left out."""
        found = dict.fromkeys(self.tensors[t].buffer for t in tensors)
        return tuple(b for b in found if b is not None)

    def input_buffers(self) -> frozenset[int]:
        return frozenset(self.buffers_of(tuple(p.tensor for p in self.inputs)))

    def output_buffers(self) -> frozenset[int]:
        return frozenset(self.buffers_of(tuple(p.tensor for p in self.outputs)))

    def is_in_place(self, step: Step, overlay: Overlay) -> bool:
        """Whether the operand lies where `overlay`, one of the step's, says."""
        read, write = self.tensors[step.reads[overlay.read]], self.tensors[step.writes[overlay.write]]
        return read.buffer == write.buffer and read.offset == write.offset + overlay.shift

    @property
    def weight_bytes(self) -> int:
        """Bytes of the distinct weights some kernel or output reads, each rounded up to 64 as it is stored."""
        return sum(-(-w.nbytes // 64) * 64 for w in self.weights)

    def reordered(self, order: tuple[int, ...]) -> Program:
        """The same program with its steps run in `order` (a permutation of step numbers)."""
        return replace(self, steps=tuple(self.steps[i] for i in order))
