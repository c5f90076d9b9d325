"""Schedule the kernel of a loop: each kernel of its body by the schedule of its own rule.

    for t in 0 … n - 1:                         for t in 0 … n - 1:
        stage: sums[j] += x[t, k] · W[k, j]         stage: tiles of sums in registers, W repacked
        stage: y[t, j] = tanh(sums[j])      ──►     stage: vectors

A stage reads and writes slices of the present iteration; alone, they are whole buffers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import tvm_ffi
from tvm import s_tir, tirx
from tvm.ir import Expr, TensorLoad, TensorRegion, Var
from tvm.s_tir import SBlock, SBlockRealize
from tvm.tirx import BufferStore, PrimFunc, Stmt

from ...frontend.relax.loop_kernel import ITERATION, ITERATIONS, STAGE, Place, bind_places, stage_block
from ...tir.expressions import loads, uses
from ...tir.index_grid import Unknown
from ...tir.inlining import REFUSALS
from ...tir.loop_nests import all_of, kernel_of, reshaped, statements
from ..rules.rule import Speed
from ..weights.repack import Repack
from .run_stages import ScheduleStage, StagedKernel


def is_loop(kernel: PrimFunc) -> bool:
    """Tell whether a kernel runs a loop's iterations."""
    return bool(kernel.attrs) and ITERATIONS in kernel.attrs


def run_iterations(kernel: PrimFunc, repackable: frozenset[int], schedule: ScheduleStage) -> StagedKernel:
    """Schedule the stages of a loop; those of another form stay as they are."""
    return _Scheduler(kernel, repackable, schedule).run()


class _Scheduler:
    def __init__(self, kernel: PrimFunc, repackable: frozenset[int], schedule: ScheduleStage):
        self.kernel, self.schedule = kernel, schedule
        read = [buffer for block in _stages(kernel.body) if not _stages(block.body) for buffer in accesses_of(block)]
        self.free = {param: number for number, param in enumerate(kernel.params) if number in repackable and read.count(param) == 1}
        self.numbers = _numbers(kernel)
        #: weights in their new layout
        self.places: dict[Var, Place] = {}
        self.repacks: list[Repack] = []
        self.speed = Speed.FAST

    def run(self) -> StagedKernel:
        body = tvm_ffi.structural_map(self.kernel.body, (SBlockRealize, self._scheduled))
        params = [self.places[param].buffer if param in self.places else param for param in self.kernel.params]
        made = PrimFunc(params, body, attrs=self.kernel.attrs)
        return StagedKernel(made, tuple(self.repacks), self.speed, 0)

    def _scheduled(self, realize: SBlockRealize) -> Stmt:
        block = realize.block
        if block.name_hint != STAGE or _stages(block.body):  # the stages of a loop inside have schedules of their own
            return realize
        try:
            return self._by_its_rule(block)
        except (Unknown, *REFUSALS):
            self.speed = Speed.LOOPS
            return realize

    def _by_its_rule(self, block: SBlock) -> Stmt:
        kernel, buffers, slices = stage_alone(block, self.numbers)
        free = frozenset(number for number, buffer in enumerate(buffers) if buffer in self.free)
        found = self.schedule(kernel, free, True)
        scheduled = s_tir.renew_defs(found.kernel)
        root = scheduled.body
        if not isinstance(root, SBlockRealize) or root.iter_values or root.block.match_buffers:
            raise Unknown("the schedule of a kernel is no plain sequence of loop nests")
        for repack in found.repacks:
            buffer = buffers[repack.parameter]
            shape = repack.shape(tuple(int(extent) for extent in buffer.ty.shape))
            self.places[buffer] = Place(reshaped(buffer, shape))
            self.repacks.append(replace(repack, parameter=self.free[buffer]))
        self.speed = max(self.speed, found.speed)
        places = {param: self.places.get(buffer, Place(buffer, slices[buffer])) for param, buffer in zip(scheduled.params, buffers, strict=True)}
        return stage_block(bind_places(root.block.body, places), root.block.alloc_buffers)


def stage_alone(block: SBlock, numbers: Sequence[Var]) -> tuple[PrimFunc, list[Var], dict[Var, tuple[Expr, ...]]]:
    """Make a stage a kernel of its own, whose slices are whole buffers; raises Unknown.

    Returns it with the buffers behind its parameters, and the index of the slice of each by one of the `numbers` of
    iterations.
    """
    accesses = accesses_of(block)
    written = written_by(block)
    if len(written) != 1:
        raise Unknown("a kernel of a loop's body has more than one result")
    buffers = [*(each for each in accesses if each not in written), *written]
    slices = {buffer: _slice(accesses[buffer], numbers) for buffer in buffers}
    alone = {buffer: reshaped(buffer, [int(extent) for extent in buffer.ty.shape[len(slices[buffer]) :]]) for buffer in buffers}
    body = _without_slices(block.body, {buffer: (alone[buffer], len(slices[buffer])) for buffer in buffers})
    kernel = kernel_of(list(alone.values()), statements(body), block.alloc_buffers, None).with_attr("tirx.noalias", True)
    if any(uses(kernel.body, number) for number in numbers):
        raise Unknown("a kernel of a loop's body computes with the number of the iteration")
    return kernel, buffers, slices


def _stages(body: Stmt) -> list[SBlock]:
    return [block for block in _blocks(body) if block.name_hint == STAGE]


def _numbers(kernel: PrimFunc) -> list[Var]:
    """List the numbers of iterations: the axis of the block around each loop's body."""
    return [axis.var for block in _blocks(kernel.body) if block.name_hint == ITERATION for axis in block.iter_vars]


def _blocks(body: Stmt) -> list[SBlock]:
    found: list[SBlock] = []
    tvm_ffi.structural_walk(body, [(SBlock, found.append)])
    return found


def accesses_of(block: SBlock) -> dict[Var, list[Sequence[Expr]]]:
    """Collect the indices by which a block accesses each buffer that is not its own."""
    found: dict[Var, list[Sequence[Expr]]] = {}
    own = set(block.alloc_buffers)
    for load in loads(block.body):
        if load.source not in own:
            found.setdefault(load.source, []).append(load.indices)
    for store in _stores(block):
        if store.buffer not in own:
            found.setdefault(store.buffer, []).append(store.indices)
    return found


def _stores(block: SBlock) -> list[BufferStore]:
    found: list[BufferStore] = []
    tvm_ffi.structural_walk(block.body, [(BufferStore, found.append)])
    return found


def written_by(block: SBlock) -> list[Var]:
    """List the buffers a block writes that are not its own."""
    own = set(block.alloc_buffers)
    return list(dict.fromkeys(store.buffer for store in _stores(block) if store.buffer not in own))


def _slice(accesses: Sequence[Sequence[Expr]], numbers: Sequence[Var]) -> tuple[Expr, ...]:
    """Return the index of the slice all accesses are in, by one of the `numbers` of iterations; nothing for a whole buffer."""
    sliced = [bool(indices) and any(uses(indices[0], number) for number in numbers) for indices in accesses]
    if not any(sliced):
        return ()
    first = accesses[0][0]
    if not all(sliced) or not all(tvm_ffi.structural_equal(first, indices[0]) for indices in accesses):
        raise Unknown("a buffer is read in slices of other iterations")
    return (first,)


def _without_slices(body: Stmt, alone: Mapping[Var, tuple[Var, int]]) -> Stmt:
    """Rewrite accesses to slices of buffers as accesses to whole buffers."""

    def load(each: TensorLoad) -> TensorLoad:
        if each.source not in alone:
            return each
        buffer, sliced = alone[each.source]
        return tirx.BufferLoad(buffer, list(each.indices)[sliced:])

    def store(each: BufferStore) -> BufferStore:
        if each.buffer not in alone:
            return each
        buffer, sliced = alone[each.buffer]
        return BufferStore(buffer, each.value, list(each.indices)[sliced:])

    def region(each: TensorRegion) -> TensorRegion:
        return all_of(alone[each.source][0]) if each.source in alone else each

    return tvm_ffi.structural_map(body, [(TensorLoad, load), (BufferStore, store), (TensorRegion, region)])
