"""Divide a fused kernel into stages: a reduction each, with what comes before and after it.

    mean ─► divide │ conv ─► add ─► relu │ conv ─► add ─► sigmoid ─► x · …        two values between: three stages
    depthwise ─► add ─► relu │ concat ─► conv ─► add                              index maps belong to their reader

A value between two stages is the last before a reduction, or before an index map that a reduction reads. Where it is a
broadcast that the reduction reads once, the smaller values it is made of are: additive attention holds queries and keys.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tvm import s_tir
from tvm.ir import TensorLoad, Var
from tvm.s_tir import SBlock
from tvm.tirx import PrimFunc

from ...support.result_store import shared_store
from ...targets import Machine
from ...tir.expressions import has_condition, loads
from ...tir.index_grid import NoMatch
from ...tir.inlining import REFUSALS, repeats
from ...tir.loop_nests import blocks_of, kernel_of, nests_in, simple
from ...tir.memoise import memoise_by_structure
from ...tir.row_window import takes_a_row, tensors_of
from ...tir.structural_key import structural_key
from ...tir.workspace import buffer_bytes
from ..rules.rule import Speed
from .candidates import RULE_WORKSPACE, is_scheduled, schedules

_MACHINE = Machine()


@dataclass(frozen=True)
class Stage:
    """Kernel of a stage, and the values it reads by number: operands of the divided kernel, then results of its stages.

    Each stage of a kernel of rows takes the number of the row.
    """

    kernel: PrimFunc
    reads: tuple[int, ...]


def faster_stages(kernel: PrimFunc, repackable: frozenset[int]) -> list[Stage]:
    """Divide a kernel that no rule takes; return nothing if its stages are plain loops too.

    `repackable` are the parameters whose layout may be chosen, none of a kernel of rows. No target counts: all divide the
    same kernels.
    """
    stages = [] if is_scheduled(kernel) else divided(kernel)
    key = f"stages {structural_key(kernel, sorted(repackable))}"
    return stages if stages and shared_store().get_or_make(key, lambda: _are_faster(kernel, stages, repackable)) else []


def _are_faster(kernel: PrimFunc, stages: Sequence[Stage], repackable: frozenset[int]) -> bool:
    fixed = takes_a_row(kernel)
    uses = Counter(value for stage in stages for value in stage.reads)
    free = (
        frozenset(n for n, value in enumerate(stage.reads) if value in repackable and uses[value] == 1)
        for stage in stages
    )
    try:
        whole = next(schedules(kernel, repackable, _MACHINE, fixed).candidates())
        parts = (
            schedules(stage.kernel, own, _MACHINE, fixed).within(RULE_WORKSPACE, RULE_WORKSPACE)
            for stage, own in zip(stages, free)
        )
        return whole.speed is Speed.LOOPS and all(each.speed < Speed.LOOPS for each in parts)
    except REFUSALS:
        return False


@memoise_by_structure
def divided(kernel: PrimFunc) -> list[Stage]:
    """Divide an unscheduled kernel of one result, in execution order; return nothing for one of a stage, or of another form."""
    try:
        stages = _Divider(kernel).stages()
    except (NoMatch, *REFUSALS):
        return []
    return stages if len(stages) > 1 else []


class _Divider:
    def __init__(self, kernel: PrimFunc):
        self.kernel = kernel
        self.blocks, self.nests = blocks_of(kernel), nests_in(kernel)
        self.writer = {block.body.buffer: number for number, block in enumerate(self.blocks)}
        written = [param for param in kernel.params if param in self.writer]
        if len(self.writer) < len(self.blocks) or written != [kernel.params[-1]]:
            raise NoMatch("a buffer is written twice, or the kernel has more than one result")
        #: for each block, the blocks it reads
        self.reads = [
            sorted({self.writer[load.source] for load in _others(block) if load.source in self.writer})
            for block in self.blocks
        ]
        if any(each >= number for number, reads in enumerate(self.reads) for each in reads):
            raise NoMatch("a buffer is read before it is written")
        self.summed: list[bool] = []
        for block, reads in zip(self.blocks, self.reads):
            self.summed.append(block.init is not None or any(self.summed[each] for each in reads))

    def stages(self) -> list[Stage]:
        """Return the stages. Raises NoMatch if two of them need one reduction."""
        ends = sorted(
            {end for number, block in enumerate(self.blocks) if block.init is not None for end in self._ends(number)}
        )
        ends.append(len(self.blocks) - 1)
        parts = [self._members(end, ends) for end in ends]
        summing = [number for part in parts for number in part if self.blocks[number].init is not None]
        if len(summing) > len(set(summing)):
            raise NoMatch("a reduction belongs to two stages")
        values = {
            value: n
            for n, value in enumerate((*tensors_of(self.kernel)[:-1], *(self.blocks[end].body.buffer for end in ends)))
        }
        return [self._stage(part, values) for part in parts]

    def _ends(self, number: int) -> set[int]:
        """Collect the blocks before `number` that end a stage of their own."""
        found = set()
        for each in self.reads[number]:
            if self.summed[each]:
                again = self._moves(self.blocks[each]) or not repeats(
                    self.blocks[number], self.blocks[each].body.buffer
                )
                found |= self._smallest(each) if again else {each}
        return found

    def _smallest(self, number: int) -> set[int]:
        """Collect the smallest blocks from which block `number` follows without a reduction: itself, or some before."""
        if self._moves(self.blocks[number]):
            return self._ends(number)
        if self.blocks[number].init is not None:
            return {number}
        found = {end for each in self.reads[number] if self.summed[each] for end in self._smallest(each)}
        return found if self._bytes(found) < self._bytes({number}) else {number}

    def _bytes(self, blocks: set[int]) -> int:
        return sum(buffer_bytes(self.blocks[each].body.buffer) for each in blocks)

    def _moves(self, block: SBlock) -> bool:
        """Return whether a block changes the places of elements it reads of a value that was summed."""
        if block.init is not None:
            return False
        if has_condition(block.body.value):
            return True
        order = [axis.var for axis in block.iter_vars]
        for load in loads(block.body.value):
            if load.source in self.writer and self.summed[self.writer[load.source]]:
                indices = simple(block, load.indices)
                places = [order.index(index) for index in indices if isinstance(index, Var) and index in order]
                fixed = [index for index in indices if not isinstance(index, Var) and not hasattr(index, "value")]
                if fixed or places != sorted(set(places)):
                    return True
        return False

    def _members(self, end: int, ends: Sequence[int]) -> list[int]:
        found, left = {end}, [end]
        while left:
            for each in self.reads[left.pop()]:
                if each not in ends and each not in found:
                    found.add(each)
                    left.append(each)
        return sorted(found)

    def _stage(self, members: list[int], values: Mapping[Var, int]) -> Stage:
        own = [self.blocks[number].body.buffer for number in members]
        read = {load.source for number in members for load in _others(self.blocks[number])} - set(own)
        operands = [value for value in values if value in read]
        row = self.kernel.params[: takes_a_row(self.kernel)]
        made = kernel_of([*row, *operands, own[-1]], [self.nests[number] for number in members], own[:-1], None)
        return Stage(s_tir.renew_defs(made).with_attr("tirx.noalias", True), tuple(values[each] for each in operands))


def _others(block: SBlock) -> list[TensorLoad]:
    """Return the loads of a block, except of its own sum."""
    return [load for load in loads(block.body.value) if not load.source.same_as(block.body.buffer)]
