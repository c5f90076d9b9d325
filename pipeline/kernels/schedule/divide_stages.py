"""Divide a fused kernel into stages: a reduction each, with what comes before and after it.

    mean ─► divide │ conv ─► add ─► relu │ conv ─► add ─► sigmoid ─► x · …        two values between: three stages
    depthwise ─► add ─► relu │ concat ─► conv ─► add                              index maps belong to their reader

A value between two stages is the last before a reduction, or before an index map that a reduction reads. Where it is a
broadcast that the reduction reads once, the smaller values it is made of are: additive attention holds queries and keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tvm.ir import IRModule, TensorLoad, Var
from tvm.s_tir import SBlock
from tvm.tirx import PrimFunc

from ...tir.expressions import has_condition, loads
from ...tir.index_grid import Unknown
from ...tir.inlining import repeats
from ...tir.loop_nests import blocks_of, kernel_of, nests_in, simple
from ...tir.workspace import buffer_bytes

#: kernel attribute: bytes that its stages may hold between them
HELD = "passfit.held"


@dataclass(frozen=True)
class Stage:
    """Kernel of a stage; it takes `operands`, buffers of the divided kernel or of stages before, then `result`."""

    kernel: PrimFunc
    operands: tuple[Var, ...]
    result: Var


def held_bytes_of(kernel: PrimFunc) -> int:
    """Return the bytes that the stages of a kernel may hold; 0 if it is not to be divided."""
    return int(kernel.attrs[HELD]) if kernel.attrs and HELD in kernel.attrs else 0


def mark_held(module: IRModule, grouped: IRModule, held: int) -> IRModule:
    """Mark the kernels that FuseTIR made of the groups of `grouped` with the bytes their stages may hold."""
    if not held:
        return module
    for var, function in grouped.functions.items():
        if function.attrs and "Primitive" in function.attrs and isinstance(kernel := module[var.name_hint], PrimFunc):
            module = IRModule({**module.functions, module.get_global_var(var.name_hint): kernel.with_attr(HELD, held)}, module.attrs)
    return module


def divide_stages(kernel: PrimFunc) -> list[Stage]:
    """Divide an unscheduled kernel of one result, in execution order. Raises Unknown for a kernel of another form."""
    return _Divider(kernel).stages()


class _Divider:
    def __init__(self, kernel: PrimFunc):
        self.kernel = kernel
        self.blocks, self.nests = blocks_of(kernel), nests_in(kernel)
        self.writer = {block.body.buffer: number for number, block in enumerate(self.blocks)}
        written = [param for param in kernel.params if param in self.writer]
        if len(self.writer) < len(self.blocks) or written != [kernel.params[-1]]:
            raise Unknown("a buffer is written twice, or the kernel has more than one result")
        #: for each block, the blocks it reads
        self.reads = [
            sorted({self.writer[load.source] for load in _others(block) if load.source in self.writer}) for block in self.blocks
        ]
        if any(each >= number for number, reads in enumerate(self.reads) for each in reads):
            raise Unknown("a buffer is read before it is written")
        self.summed: list[bool] = []
        for block, reads in zip(self.blocks, self.reads):
            self.summed.append(block.init is not None or any(self.summed[each] for each in reads))

    def stages(self) -> list[Stage]:
        """Return the stages. Raises Unknown if two of them need one reduction."""
        ends = sorted({end for number, block in enumerate(self.blocks) if block.init is not None for end in self._ends(number)})
        ends.append(len(self.blocks) - 1)
        parts = [self._members(end, ends) for end in ends]
        summing = [number for part in parts for number in part if self.blocks[number].init is not None]
        if len(summing) > len(set(summing)):
            raise Unknown("a reduction belongs to two stages")
        return [self._stage(part) for part in parts]

    def _ends(self, number: int) -> set[int]:
        """Collect the blocks before `number` that end a stage of their own."""
        found = set()
        for each in self.reads[number]:
            if self.summed[each]:
                again = self._moves(self.blocks[each]) or not repeats(self.blocks[number], self.blocks[each].body.buffer)
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
        """Tell whether a block changes the places of elements it reads of a value that was summed."""
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

    def _stage(self, members: list[int]) -> Stage:
        own = [self.blocks[number].body.buffer for number in members]
        read = {load.source for number in members for load in _others(self.blocks[number])} - set(own)
        given = [*self.kernel.params, *(block.body.buffer for block in self.blocks)]
        operands = tuple(each for each in dict.fromkeys(given) if each in read)
        made = kernel_of([*operands, own[-1]], [self.nests[number] for number in members], own[:-1], None)
        return Stage(made.with_attr("tirx.noalias", True), operands, own[-1])


def _others(block: SBlock) -> list[TensorLoad]:
    """Return the loads of a block, those of its own sum left out."""
    return [load for load in loads(block.body.value) if not load.source.same_as(block.body.buffer)]
