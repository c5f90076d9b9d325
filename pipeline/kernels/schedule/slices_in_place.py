"""Find the operands of a loop whose slices may lie in a result: each is read for the last time before one is written there.

    for t:                                          x  ┌───┬───┬───┬───┐        of smaller slices it lies at the end,
        sums = x[t] · W + state · R                 y  └───┴───┴───┴───┘        where y[t] reaches no slice to come
        y[t] = tanh(sums)              y may take the place of x

The order of the stages of a body holds for all code a compiler makes of them, as operand and result are one array to it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import tvm_ffi
from tvm.ir import Expr, Var
from tvm.s_tir import SBlock, SBlockRealize
from tvm.tirx import For, PrimFunc, Stmt

from ...frontend.relax.loop_kernel import ITERATION, ITERATIONS, STAGE
from ...program import DTYPE_BYTES, Overlay
from ...tir.expressions import uses
from ...tir.in_place.analysis import Sharing, analyse_sharing, takes_addresses
from ...tir.index_grid import Unknown
from ...tir.loop_nests import int64, statements
from .run_iterations import accesses_of, stage_alone, written_by


@dataclass
class _Use:
    """Use of a parameter: its accesses in the loop, the last stage that reads it, and the first that writes it.

    Stages before the loop have negative numbers.
    """

    reads: int | None = None
    writes: int | None = None
    inside: list[Sequence[Expr]] = field(default_factory=list)
    before: bool = False


def loop_sharing(kernel: PrimFunc) -> Sharing:
    """Find the operands of a loop's kernel that may lie in a result; see `program.Step`."""
    found = analyse_sharing(kernel)
    try:
        results, overlays = _Loop(kernel).overlays()
    except Unknown:
        return found
    known = {(each.read, each.write) for each in found.in_place}
    more = (each for each in overlays if (each.read, each.write) not in known)
    return Sharing(results, (*found.in_place, *more), found.copies)


class _Loop:
    """Hold the stages of a loop's kernel, and their uses of each parameter. Raises Unknown for another form."""

    def __init__(self, kernel: PrimFunc):
        if takes_addresses(kernel.body):
            raise Unknown("a stage passes an address, through which anything could be read or written")
        if not isinstance(kernel.body, SBlockRealize):
            raise Unknown("a loop has no root block")
        before, self.number, self.trips, inside = loop_parts(kernel.body.block.body)
        self.params = list(kernel.params)
        self.stages = {number - len(before): block for number, block in enumerate([*before, *inside])}
        self.uses = {param: _Use() for param in self.params}
        for number, block in self.stages.items():
            written = set(written_by(block))
            for buffer, indices in accesses_of(block).items():
                if buffer in self.uses:
                    self._add(self.uses[buffer], number, buffer in written, indices)

    def _add(self, use: _Use, number: int, is_written: bool, indices: Sequence[Sequence[Expr]]) -> None:
        # a stage that writes a buffer may read it as well: as a result it was written before
        if is_written:
            use.writes = number if use.writes is None else use.writes
        else:
            use.reads = number
        use.before |= number < 0
        use.inside += indices if number >= 0 else []

    def overlays(self) -> tuple[int, list[Overlay]]:
        """Count the results, and list the operands that may lie in one."""
        operands = [param for param in self.params if self.uses[param].writes is None]
        results = self.params[len(operands) :]
        if self.params[: len(operands)] != operands:
            raise Unknown("a result stands among the operands")
        found = []
        for read, operand in enumerate(operands):
            for write, result in enumerate(results):
                shift = self._shift(operand, result)
                if shift is not None:
                    found.append(Overlay(read, write, shift * DTYPE_BYTES[str(operand.ty.dtype)]))
        return len(results), found

    def _shift(self, operand: Var, result: Var) -> int | None:
        """Return the shift, in elements, of an operand that may lie in a result."""
        read, written = self.uses[operand], self.uses[result]
        if operand.ty.dtype != result.ty.dtype or read.reads is None or written.writes is None or read.reads > written.writes:
            return None
        ours, theirs = _elements(operand), _elements(result)
        if read.reads == written.writes and (ours != theirs or not self._takes_turns(read.reads, operand, result)):
            return None
        if not read.inside:
            return 0 if ours == theirs else None
        along, other = self._direction(read), self._direction(written)
        if along is None or along != other or any(int(each.ty.shape[0]) != self.trips for each in (operand, result)):
            return None
        # the end that both reach last is the same for both
        return max(theirs - ours, 0) if along > 0 else min(theirs - ours, 0)

    def _direction(self, use: _Use) -> int | None:
        """Return 1 or -1 if all uses are of the present slice, forwards or backwards; else None."""
        directions = (self.number, int64(self.trips - 1) - self.number)
        for direction, index in zip((1, -1), directions):
            if not use.before and all(each and tvm_ffi.structural_equal(each[0], index) for each in use.inside):
                rest = (index for each in use.inside for index in list(each)[1:])
                return None if any(uses(index, self.number) for index in rest) else direction
        return None

    def _takes_turns(self, number: int, operand: Var, result: Var) -> bool:
        """Tell whether a stage reads each element only to write the one in its place."""
        kernel, buffers, _ = stage_alone(self.stages[number], [self.number])
        read, write = buffers.index(operand), buffers.index(result)
        alone = analyse_sharing(kernel)
        return Overlay(read, write - (len(buffers) - alone.results), 0) in alone.in_place


def is_loop_body(stmt: Stmt) -> bool:
    """Tell whether `stmt` ends with the iterations of a loop."""
    last = statements(stmt)[-1]
    return isinstance(last, For) and ITERATIONS in last.annotations


def loop_parts(stmt: Stmt) -> tuple[list[SBlock], Var, int, list[SBlock]]:
    """Return the stages before the loop, its iteration number, its iterations, and its stages.

    Raises Unknown for another form.
    """
    *before, loop = statements(stmt)
    if not isinstance(loop, For) or ITERATIONS not in loop.annotations or not isinstance(loop.body, SBlockRealize):
        raise Unknown("a kernel does not end with its loop")
    block = loop.body.block
    if block.name_hint != ITERATION or len(block.iter_vars) != 1:
        raise Unknown("a loop has no block around its body")
    return _stages(before), block.iter_vars[0].var, int(loop.extent), _stages(statements(block.body))


def _stages(parts: Sequence[Stmt]) -> list[SBlock]:
    if not all(isinstance(each, SBlockRealize) and each.block.name_hint == STAGE for each in parts):
        raise Unknown("a loop runs something else than stages")
    return [each.block for each in parts]


def _elements(buffer: Var) -> int:
    return math.prod(int(extent) for extent in buffer.ty.shape)
