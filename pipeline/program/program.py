"""Describe the lowered function as plain data: kernels called in steps over buffers. No TVM, no ONNX.

    input ─┐
           ├─► step 0: conv2d_relu ──► buffer 1 ─► step 1: pool ──► buffer 2 ─► output
    weight ┘

A program is a tree: a step may be a loop, which runs a program of its own over slices of its operands and results.

    step 2: for t in 0 … 39:  step 0: product(x[t], weight) ─► value ─► step 1: tanh ──► y[t]

A streaming region is a loop of ticks. Its calls have guards, and kernels that take the number of the call compute its rows:

    step 3: for t in 0 … 57:  step 0: conv(t; x) ──► ring of 3 rows         step 1, t from 2 on: conv(t - 2; ring) ──► y
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

#: bytes of one element
DTYPE_BYTES = {
    "bool": 1, "int8": 1, "uint8": 1, "int16": 2, "uint16": 2, "float16": 2, "bfloat16": 2,
    "int32": 4, "uint32": 4, "float32": 4, "int64": 8, "uint64": 8, "float64": 8,
}  # fmt: skip


@dataclass(frozen=True)
class Tensor:
    """Shaped window on a buffer, `offset` bytes into it, or on a weight; exactly one is set.

    Several tensors may share a buffer: views, parts of a concatenation, results that took over an operand's memory.
    """

    shape: tuple[int, ...]
    dtype: str
    buffer: int | None = None
    weight: int | None = None
    offset: int = 0

    @cached_property
    def nbytes(self) -> int:
        return math.prod(self.shape) * DTYPE_BYTES[self.dtype]

    @property
    def buffer_number(self) -> int:
        """Return the number of the buffer of a tensor known to be on one."""
        if self.buffer is None:
            raise TypeError(f"a tensor on weight {self.weight} has no buffer")
        return self.buffer

    @property
    def weight_number(self) -> int:
        """Return the number of the weight of a tensor known to be on one."""
        if self.weight is None:
            raise TypeError(f"a tensor on buffer {self.buffer} has no weight")
        return self.weight


@dataclass(frozen=True)
class Buffer:
    """Memory of one activation, written while the model runs (an input: by the caller)."""

    name: str
    nbytes: int


@dataclass(frozen=True)
class Weight:
    """Distinct read-only constant; `digest` is the sha256 of its bytes.

    The bytes are kept apart from the program. `initializers` are those of the ONNX file it comes from, if that is known.
    """

    name: str
    nbytes: int
    digest: str
    initializers: tuple[str, ...] = ()


@dataclass(frozen=True)
class Overlay:
    """Place of an operand in a result: byte b of read `read` at byte b + `shift` of write `write`."""

    read: int
    write: int
    shift: int = 0


@dataclass(frozen=True)
class Guard:
    """Trips of a loop in which a step of its body runs: `offset` + n · `period`, for n below `groups`.

    `numbered`: the kernel takes n as its first argument, and computes the n-th rows.
    """

    period: int = 1
    offset: int = 0
    groups: int = 1
    numbered: bool = False

    @property
    def end(self) -> int:
        """Return the trip after the last one."""
        return self.offset + (self.groups - 1) * self.period + 1

    def runs_in(self, trip: int) -> bool:
        """Return whether the step runs in a trip."""
        return self.offset <= trip < self.end and (trip - self.offset) % self.period == 0


@dataclass(frozen=True)
class Step:
    """Call of one kernel.

    `reads` and `writes` are tensor numbers, in the order of the kernel's arguments (reads first). `nodes` names the
    ONNX nodes the kernel computes, if that is known.

    `in_place`: each of these operands may be stored in the result, since the kernel reads no element after it has written the
    one in its place. `copies`: with all of these operands in place, the kernel has nothing to do.

    `workspaces`: so many of the last of `writes` are not results, but memory used while the step runs. `guard`: in the
    body of a loop, the trips that run the step, if not all do.
    """

    kernel: str
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    nodes: tuple[str, ...] = ()
    in_place: tuple[Overlay, ...] = ()
    copies: tuple[Overlay, ...] = ()
    workspaces: int = 0
    guard: Guard | None = None

    @property
    def results(self) -> tuple[int, ...]:
        """Return the tensors written for other steps: `writes` without the workspaces."""
        return self.writes[: len(self.writes) - self.workspaces]

    def runs_in(self, trip: int) -> bool:
        """Return whether a trip of the loop around runs the step."""
        return self.guard is None or self.guard.runs_in(trip)


@dataclass(frozen=True)
class Window:
    """Place of a tensor of a loop's body in one of the loop's `reads` and `writes`, by number.

    In trip t it begins `offset` + t · `stride` bytes into it.
    """

    tensor: int
    place: int
    offset: int = 0
    stride: int = 0


@dataclass(frozen=True)
class Loop(Step):
    """Run a program `trips` times; `kernel` is the name of the loop.

    Tensors of the body are in the loop's operands and results, by `windows`; or on weights of the program around it. Its
    other buffers are at `offsets`, by number, in the loop's workspace of the number in `pieces`, the first if there are no
    pieces; no offsets say that they have no places yet. A buffer that is an input and an output of the body lives through
    all trips: a ring of rows. `carries` are pairs of tensors at one place: what a trip writes as the second, the next one
    reads as the first. `stops`: its first result by trip is 0 from a trip on that changes no state; others are not read from
    there on.
    """

    trips: int = field(kw_only=True)
    body: Program = field(kw_only=True)
    windows: tuple[Window, ...] = field(kw_only=True)
    carries: tuple[tuple[int, int], ...] = field(default=(), kw_only=True)
    offsets: tuple[int, ...] = field(default=(), kw_only=True)
    pieces: tuple[int, ...] = field(default=(), kw_only=True)
    stops: bool = field(default=False, kw_only=True)

    @cached_property
    def outside(self) -> frozenset[int]:
        """Return the buffers of the body that stand for operands and results."""
        return frozenset(self.body.buffers_of(tuple(window.tensor for window in self.windows)))

    def workspace_of(self, buffer: int) -> int:
        """Return the tensor around the loop in which a buffer of the body has its offset."""
        return self.writes[len(self.results) + (self.pieces[buffer] if self.pieces else 0)]

    @cached_property
    def rings(self) -> frozenset[int]:
        """Return the buffers of the body that live through all trips."""
        return (self.body.input_buffers() & self.body.output_buffers()) - self.outside

    @cached_property
    def is_numbered(self) -> bool:
        """Return whether some kernels compute rows by their number."""
        return any(step.guard is not None and step.guard.numbered for step in self.body.steps)

    @cached_property
    def inner(self) -> Program:
        """Return the body as its workspace sees it: the tensors and buffers that are outside are empty."""
        tensors = tuple(
            replace(each, shape=(0,), offset=0) if each.buffer in self.outside else each for each in self.body.tensors
        )
        buffers = tuple(
            replace(each, nbytes=0) if n in self.outside else each for n, each in enumerate(self.body.buffers)
        )
        return replace(self.body, tensors=tensors, buffers=buffers)


@dataclass(frozen=True)
class View:
    """Alias of a tensor: byte b of `source` is byte b + `shift` of `tensor`, as far as that has one.

    Both are on one buffer. `elided`: a kernel would have copied it there, had memory not been shared.
    """

    tensor: int
    source: int
    shift: int = 0
    elided: bool = False


@dataclass(frozen=True)
class Port:
    """Named input or output of the model, with its tensor."""

    name: str
    tensor: int


@dataclass(frozen=True)
class Program:
    """Lowered model: steps in order, over tensors, buffers and weights named by index.

    A tensor that no step writes, and that is not an input, is a view; `views` give its sources.
    """

    name: str
    steps: tuple[Loop | Step, ...]
    tensors: tuple[Tensor, ...]
    buffers: tuple[Buffer, ...]
    weights: tuple[Weight, ...]
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    views: tuple[View, ...] = ()

    def buffers_of(self, tensors: tuple[int, ...]) -> tuple[int, ...]:
        """Return the distinct buffers behind `tensors`, in order; weights are left out."""
        found = dict.fromkeys(self.tensors[t].buffer for t in tensors)
        return tuple(b for b in found if b is not None)

    @cached_property
    def dtypes(self) -> tuple[str, ...]:
        """List the dtypes of the tensors on each buffer, such as `int8`, or `float32/int8` for two of them."""
        found: list[set[str]] = [set() for _ in self.buffers]
        for tensor in self.tensors:
            if tensor.buffer is not None:
                found[tensor.buffer].add(tensor.dtype)
        return tuple("/".join(sorted(each)) for each in found)

    def input_buffers(self) -> frozenset[int]:
        """Return the buffers of the inputs."""
        return frozenset(self.buffers_of(tuple(p.tensor for p in self.inputs)))

    def output_buffers(self) -> frozenset[int]:
        """Return the buffers of the outputs."""
        return frozenset(self.buffers_of(tuple(p.tensor for p in self.outputs)))

    def is_in_place(self, step: Step, overlay: Overlay) -> bool:
        """Return whether the operand of `overlay`, one of the step's, is in place."""
        read, write = self.tensors[step.reads[overlay.read]], self.tensors[step.writes[overlay.write]]
        return read.buffer == write.buffer and read.offset == write.offset + overlay.shift

    @property
    def weight_bytes(self) -> int:
        """Return the bytes of all distinct weights, each rounded up to 64 as stored."""
        return sum(-(-w.nbytes // 64) * 64 for w in self.weights)

    def reordered(self, order: tuple[int, ...]) -> Program:
        """Return the program with its steps run in `order`, a permutation of step numbers."""
        return replace(self, steps=tuple(self.steps[i] for i in order))

    def with_calls(self, change: Callable[[Program, Step], Step]) -> Program:
        """Return the program with each call of a kernel changed, in loops too; see `calls`."""

        def changed(step: Loop | Step) -> Loop | Step:
            return replace(step, body=step.body.with_calls(change)) if isinstance(step, Loop) else change(self, step)

        return replace(self, steps=tuple(map(changed, self.steps)))

    def calls(self, starts: int = 1, trips: int = 1) -> Iterator[Call]:
        """Yield the calls of kernels in order, in loops too.

        The program starts so many times, and runs `trips` times each.
        """
        for step in self.steps:
            yield from self.calls_of(step, starts, trips)

    def calls_of(self, step: Loop | Step, starts: int = 1, trips: int = 1) -> Iterator[Call]:
        """Yield the calls of kernels by one step, in a loop too; see `calls`."""
        runs = starts * (trips if step.guard is None else step.guard.groups)
        if isinstance(step, Loop):
            yield from step.body.calls(runs, step.trips)
        else:
            yield Call(self, step, runs)


class Call(NamedTuple):
    """Call of a kernel in a tree of programs: the program whose tensors it takes, its step, and how often it runs."""

    program: Program
    step: Step
    runs: int
