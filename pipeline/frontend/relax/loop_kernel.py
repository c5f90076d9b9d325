"""Build a Scan as one kernel, which kernels/lower/loops.py takes apart: a loop over the iterations around those of its body.

    state = initial state
    for t in 0 … n - 1:
        stage: sums = x[t] · W + state · R         each kernel of the body is a block of its own
        stage: y[t] = tanh(sums)
        state = y[t]

States lie in the results, slices are read and written in place. Values between the stages are buffers of the kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tvm import s_tir, tirx
from tvm.ir import Expr, Range, Var
from tvm.s_tir import SBlock, SBlockRealize
from tvm.tirx import BufferStore, For, IterVar, PrimFunc, Stmt

from ...tir.loop_nests import all_of, buffer_of, int64, loops_around, move_accesses, sequence, spatial_axes

#: kernel attribute, and annotation of its loop: number of iterations
ITERATIONS = "passfit.iterations"
#: kernel attribute: its first result by iteration is 0 from one on that changes no state, and others are not read from there on
STOPPING = "passfit.stops"
#: name of the block around the body, whose axis is the number of the iteration; those inside have the names of kernels
ITERATION = "iteration"
_SERIAL, _ORDERED = 0, 3
_OPAQUE = 8


class Place(NamedTuple):
    """Location of a value: a buffer, or its slice of the present iteration.

    Of a `row`, pairs of an axis and an index, the value is the one along this axis of the slice.
    """

    buffer: Var
    slice: tuple[Expr, ...] = ()
    row: tuple[int, int] | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        shape = [int(extent) for extent in self.buffer.ty.shape[len(self.slice) :]]
        if self.row is not None:
            shape[self.row[0]] = 1
        return tuple(shape)

    def at(self, indices: Sequence[Expr]) -> list[Expr]:
        """Return the index, in the buffer, of an element of the value."""
        found = list(indices)
        if self.row is not None:
            found[self.row[0]] = int64(self.row[1])
        return [*self.slice, *found]


@dataclass
class LoopKernel:
    """Collect the parts of a loop of `trips` iterations; `params` are operands, then results."""

    trips: int
    stops: bool = False
    params: list[Var] = field(default_factory=list)
    own: list[Var] = field(default_factory=list)
    before: list[Stmt] = field(default_factory=list)
    body: list[Stmt] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.number = Var("v_t", "int64")

    def param(self, name: str, shape: Sequence[int], dtype: str) -> Place:
        """Add an operand or a result."""
        self.params.append(buffer_of(name, shape, dtype))
        return Place(self.params[-1])

    def sliced(self, whole: Place, backwards: bool, row: tuple[int, int] | None = None) -> Place:
        """Return the slice of the present iteration along the first axis, or a row of it."""
        return Place(whole.buffer, (int64(self.trips - 1) - self.number if backwards else self.number,), row)

    def buffer(self, name: str, shape: Sequence[int], dtype: str) -> Place:
        """Add a buffer of the kernel."""
        self.own.append(buffer_of(name, shape, dtype))
        return Place(self.own[-1])

    def stage(self, name: str, kernel: PrimFunc, places: Sequence[Place]) -> None:
        """Add a kernel of the body by its name, with its operands and results at `places`."""
        kernel = s_tir.renew_defs(kernel)
        root = kernel.body.block
        places_of = dict(zip(kernel.params, places, strict=True))
        buffers = {param: place.buffer for param, place in places_of.items()}
        bound = move_accesses(root.body, buffers, lambda param, indices: places_of[param].at(indices))
        self.body.append(stage_block(name, bound, root.alloc_buffers))

    def copy(self, source: Place, to: Place, *, first: bool = False) -> None:
        """Copy a value in each iteration, or before the first."""
        (self.before if first else self.body).append(copy_stage(source, to))

    def made(self) -> PrimFunc:
        """Return the kernel."""
        loop = loop_of(self.number, self.trips, self.body)
        root = SBlock([], [], [], "root", sequence([*self.before, loop]), alloc_buffers=self.own)
        attributes = {"tirx.noalias": True, "op_pattern": _OPAQUE, ITERATIONS: self.trips}
        if self.stops:
            attributes[STOPPING] = True
        made = PrimFunc(self.params, SBlockRealize([], tirx.const(True), root))
        for name, value in attributes.items():
            made = made.with_attr(name, value)
        return made


def loop_of(number: Var, trips: int, stages: Sequence[Stmt]) -> For:
    """Build the loop of `trips` iterations over stages, which know the iteration by its `number`."""
    # the number is an axis of a block around the body, as TVM wants blocks to read no loop directly
    count, axis = Var("t", "int64"), IterVar(Range(0, int64(trips)), number, _ORDERED)
    block = SBlockRealize([count], tirx.const(True), SBlock([axis], [], [], ITERATION, sequence(stages)))
    return For(count, int64(0), int64(trips), _SERIAL, block, annotations={ITERATIONS: trips})


def stage_block(name: str, body: Stmt, own: Sequence[Var]) -> Stmt:
    """Put the loop nests of a kernel of the body into a block, with their buffers."""
    return SBlockRealize([], tirx.const(True), SBlock([], [], [], name, body, alloc_buffers=list(own)))


def copy_stage(source: Place, to: Place) -> Stmt:
    """Build the stage that copies a value."""
    axes = spatial_axes(to.shape)
    at = [axis.var for axis in axes]
    store = BufferStore(to.buffer, tirx.BufferLoad(source.buffer, source.at(at)), to.at(at))
    block = SBlock(axes, [all_of(source.buffer)], [all_of(to.buffer)], "copy", store)
    return stage_block("copy", loops_around(block), [])
