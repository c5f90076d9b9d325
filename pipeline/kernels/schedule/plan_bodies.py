"""Lay the buffers of a loop's body into one array per dtype, by a plan of their own; run its stages in that plan's order.

    value_0 = allocate [1, 512]               values = allocate [512]
    value_1 = allocate [1, 512]         ──►   for t in 0 … n - 1:
    for t in 0 … n - 1:                           stage: values[0 … 511] = x[t] · W
        stage: value_0 = x[t] · W                 stage: values[0 … 511] = softmax(values[0 … 511])
        stage: value_1 = softmax(value_0)

TVM's storage rewriting gives a buffer the memory of one that is gone as a whole: two small ones never lie in a large one.
Values of one dtype are one array, so no compiler moves a read behind a write to the same place. The body of a loop inside
is planned first; its array is a buffer of the body around it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import tvm_ffi
from tvm import tirx
from tvm.ir import Expr, TensorLoad, TensorRegion, Var
from tvm.s_tir import SBlock, SBlockRealize
from tvm.tirx import BufferStore, PrimFunc, Stmt

from ...frontend.relax.loop_kernel import iterations_loop, stage_block
from ...memory import ALIGNMENT
from ...memory.placement.kept_body import BodyArray, KeptBody
from ...memory.placement.plan_body import BodyPlan, only_dtype, plan_body
from ...memory.validation.validate_plan import validate_plan
from ...program import DTYPE_BYTES, Buffer, Overlay, Port, Program, Step, Tensor
from ...tir.in_place.analysis import analyse_sharing
from ...tir.index_grid import Unknown
from ...tir.loop_nests import all_of, buffer_of, flat_index, int64, kernel_of, sequence, statements
from ...tir.workspace import buffer_bytes
from .kept_bodies import record_bodies
from .run_iterations import accesses_of, stage_alone, written_by
from .slices_in_place import is_loop_body, loop_parts


def plan_bodies(kernel: PrimFunc, least: int) -> PrimFunc:
    """Plan the bodies of a scheduled loop and of the loops inside; buffers of a stage of up to `least` bytes stay its own.

    Raises Unknown for a kernel of another form.
    """
    root, found = kernel.body.block, list[KeptBody]()
    body, own = _planned(root.body, root.alloc_buffers, least, found)
    return record_bodies(kernel_of(kernel.params, statements(body), own, kernel.attrs), found)


def _planned(stmt: Stmt, own: Sequence[Var], least: int, found: list[KeptBody]) -> tuple[Stmt, list[Var]]:
    """Plan the body of the loop that ends `stmt`; return it with its buffers, and add it to the bodies `found`."""
    before, number, trips, inside = loop_parts(stmt)
    blocks, shared = [], []
    for block in inside:
        nests, between = _nests(block, least, found)
        blocks += nests
        shared += between
    outside = {buffer for block in before for buffer in accesses_of(block)}
    planned = [buffer for buffer in (*own, *shared) if buffer not in outside and (buffer in own or buffer_bytes(buffer) > least)]
    body = _Body(blocks, planned, number)
    plan = plan_body(body.program())
    for dtype, each in plan.plans.items():
        validate_plan(only_dtype(plan.program, dtype), each, ALIGNMENT)
    names = {dtype: f"{dtype}_values" + (f"_{len(found)}" if found else "") for dtype in plan.plans}
    laid, arrays = body.laid(plan, names)
    found.append(body.kept(plan, names, trips))
    stages = [SBlockRealize([], tirx.const(True), block) for block in before]
    others = [buffer for buffer in (*own, *shared) if buffer not in planned]
    return sequence([*stages, iterations_loop(number, trips, laid)]), [*arrays, *others]


def _nests(block: SBlock, least: int, found: list[KeptBody]) -> tuple[list[SBlock], list[Var]]:
    """Divide a stage into its loop nests if they share a large buffer.

    Returns them with all they share. Buffers of one nest are left to it: TVM makes them as small as the nest allows.
    """
    body, own = block.body, list(block.alloc_buffers)
    if is_loop_body(body):
        body, own = _planned(body, own, least, found)
        return [stage_block(body, ()).block], own
    nests = statements(body)
    used = [set(accesses_of(stage_block(nest, ()).block)) for nest in nests]
    shared = [buffer for buffer in own if sum(buffer in each for each in used) > 1]
    if all(buffer_bytes(buffer) <= least for buffer in shared):
        return [block], []
    alone = [[buffer for buffer in own if buffer in each and buffer not in shared] for each in used]
    return [stage_block(*each).block for each in zip(nests, alone)], shared


class _Body:
    """Describe a body as a program: `values` are its buffers, all that is else written keeps its order alone."""

    def __init__(self, blocks: Sequence[SBlock], values: Sequence[Var], number: Var):
        self.blocks, self.number = blocks, number
        self.accesses = [accesses_of(block) for block in blocks]
        self.written = [written_by(block) for block in blocks]
        self.values = {value: place for place, value in enumerate(values)}
        ordered = dict.fromkeys(buffer for written in self.written for buffer in written if buffer not in self.values)
        #: tensors by buffer, the values first
        self.numbers = {buffer: place for place, buffer in enumerate([*self.values, *ordered])}

    def program(self) -> Program:
        """Return the program of one iteration. Raises Unknown for a dtype without a size."""
        if any(str(value.ty.dtype) not in DTYPE_BYTES for value in self.values):
            raise Unknown("a value of a loop's body is of a dtype without a size")
        tensors, buffers = [], []
        for buffer, number in self.numbers.items():
            shape = tuple(int(extent) for extent in buffer.ty.shape) if buffer in self.values else (0,)
            tensors.append(Tensor(shape, str(buffer.ty.dtype), buffer=number))
            buffers.append(Buffer(buffer.name, tensors[-1].nbytes))
        steps, known = [], set(self.numbers) - set(self.values)
        carried = list(known)
        for place in range(len(self.blocks)):
            before = set(known)
            steps.append(self._step(place, before))
            carried += [buffer for buffer in self._reads(place, before) if buffer not in known]
            known.update(self.written[place])
        ports = tuple(Port(buffer.name, number) for buffer, number in self.numbers.items() if buffer in carried)
        return Program("body", tuple(steps), tuple(tensors), tuple(buffers), (), ports, ports)

    def _reads(self, place: int, known: set[Var]) -> list[Var]:
        """List the numbered buffers a part reads: of those it writes itself, what was written before."""
        written = self.written[place]
        return [each for each in self.accesses[place] if each in self.numbers and (each not in written or each in known)]

    def _step(self, place: int, known: set[Var]) -> Step:
        reads, writes = self._reads(place, known), self.written[place]
        in_place, copies = self._sharing(place, reads, writes)
        kept = [Overlay(number, writes.index(each)) for number, each in enumerate(reads) if each in writes]
        read, write = (tuple(self.numbers[each] for each in group) for group in (reads, writes))
        return Step(str(place), read, write, in_place=(*kept, *in_place), copies=copies)

    def _sharing(self, place: int, reads: list[Var], writes: list[Var]) -> tuple[tuple[Overlay, ...], tuple[Overlay, ...]]:
        """Return the values that may lie in the value a part writes, and those whose copy it only is."""
        if len(writes) != 1 or writes[0] not in self.values or writes[0] in reads:
            return (), ()
        try:
            alone, buffers, _ = stage_alone(self.blocks[place], [self.number])
        except Unknown:
            return (), ()
        found = analyse_sharing(alone)
        ours = [
            [Overlay(reads.index(buffers[each.read]), 0, each.shift) for each in kind if self._is_like(buffers[each.read], writes[0], reads)]
            for kind in (found.in_place, found.copies)
        ]
        whole = len(ours[1]) == len(found.copies)  # a copy of a parameter as well has something to do
        same = (each for each in ours[0] if not each.shift and _elements(reads[each.read]) == _elements(writes[0]))
        return tuple(same), tuple(ours[1]) if whole else ()

    def _is_like(self, read: Var, write: Var, reads: Sequence[Var]) -> bool:
        return read in self.values and read in reads and read.ty.dtype == write.ty.dtype

    def kept(self, plan: BodyPlan, names: Mapping[str, str], trips: int) -> KeptBody:
        """Describe the body as planned; steps have the names of their results, `names` are those of the arrays."""
        steps = tuple(replace(step, kernel=self.written[int(step.kernel)][0].name) for step in plan.program.steps)
        arrays = tuple(BodyArray(names[dtype], dtype, each) for dtype, each in plan.plans.items())
        return KeptBody("", trips, ALIGNMENT, replace(plan.program, steps=steps), arrays)

    def laid(self, plan: BodyPlan, names: Mapping[str, str]) -> tuple[list[Stmt], list[Var]]:
        """Return the stages as planned, over an array per dtype of these `names`, and these arrays."""
        arrays = {dtype: buffer_of(names[dtype], [each.arena // DTYPE_BYTES[dtype]], dtype) for dtype, each in plan.plans.items()}
        places = {
            value: (arrays[str(value.ty.dtype)], plan.offset(number) // DTYPE_BYTES[str(value.ty.dtype)]) for value, number in self.values.items()
        }
        blocks = [self.blocks[int(step.kernel)] for step in plan.program.steps]
        return [_laid(stage_block(block.body, block.alloc_buffers), places) for block in blocks], list(arrays.values())


def _elements(buffer: Var) -> int:
    return math.prod(int(extent) for extent in buffer.ty.shape)


def _laid(stmt: Stmt, places: dict[Var, tuple[Var, int]]) -> Stmt:
    """Rewrite the accesses to buffers to their places: an array and the first element."""

    def load(each: TensorLoad) -> TensorLoad:
        return each if each.source not in places else tirx.BufferLoad(places[each.source][0], [_index(each.source, each.indices, places)])

    def store(each: BufferStore) -> BufferStore:
        if each.buffer not in places:
            return each
        return BufferStore(places[each.buffer][0], each.value, [_index(each.buffer, each.indices, places)])

    def region(each: TensorRegion) -> TensorRegion:
        return each if each.source not in places else all_of(places[each.source][0])

    laid = tvm_ffi.structural_map(stmt, [(TensorLoad, load), (BufferStore, store), (TensorRegion, region)])
    found: list[Var] = []
    tvm_ffi.structural_walk(laid, (Var, found.append))
    if any(each in places for each in found):
        raise Unknown("a buffer is used as a whole")
    return laid


def _index(buffer: Var, indices: Sequence[Expr], places: dict[Var, tuple[Var, int]]) -> Expr:
    return flat_index(buffer.ty.shape, indices) + int64(places[buffer][1])
