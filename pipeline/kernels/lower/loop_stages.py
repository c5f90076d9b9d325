"""Find the stages in the kernel of a loop, and make each a kernel of its own."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import NamedTuple

import tvm_ffi
from tvm.ir import Expr, Var
from tvm.s_tir import SBlock, SBlockRealize
from tvm.tirx import BufferStore, For, IntImm, PrimFunc, Stmt

from ...frontend.relax.loop_kernel import ITERATION, ITERATIONS
from ...tir.expressions import collect, loads, uses
from ...tir.index_grid import NoMatch
from ...tir.loop_nests import int64, kernel_of, move_accesses, reshaped, statements


def is_loop(kernel: PrimFunc) -> bool:
    """Return whether a kernel runs a loop's iterations."""
    return bool(kernel.attrs) and ITERATIONS in kernel.attrs


def is_loop_body(stmt: Stmt) -> bool:
    """Return whether `stmt` ends with the iterations of a loop."""
    last = statements(stmt)[-1]
    return isinstance(last, For) and ITERATIONS in last.annotations


def loop_parts(stmt: Stmt) -> tuple[list[SBlock], Var, int, list[SBlock]]:
    """Return the stages before the loop, its iteration number, its iterations, and its stages.

    Raises NoMatch for another form.
    """
    *before, loop = statements(stmt)
    if not isinstance(loop, For) or ITERATIONS not in loop.annotations or not isinstance(loop.body, SBlockRealize):
        raise NoMatch("a kernel does not end with its loop")
    block = loop.body.block
    if block.name_hint != ITERATION or len(block.iter_vars) != 1:
        raise NoMatch("a loop has no block around its body")
    return _stages(before), block.iter_vars[0].var, int(loop.extent), _stages(statements(block.body))


def _stages(parts: Sequence[Stmt]) -> list[SBlock]:
    if not all(isinstance(each, SBlockRealize) and not each.iter_values for each in parts):
        raise NoMatch("a loop runs something else than stages")
    return [each.block for each in parts]


class StageKernel(NamedTuple):
    """Stage as a kernel of its own: the buffers behind its parameters, the index of the slice of each, and its results.

    The results are the last parameters.
    """

    kernel: PrimFunc
    buffers: list[Var]
    slices: dict[Var, tuple[Expr, ...]]
    results: int


def stage_alone(block: SBlock, number: Var, rows: Container[Var]) -> StageKernel:
    """Make a kernel of a stage, with slices by the `number` of the trip as whole buffers; raises NoMatch.

    Of the buffers in `rows`, a slice has one index more, a constant.
    """
    accesses = accesses_of(block)
    written = buffers_written(block)
    buffers = [*(each for each in accesses if each not in written), *written]
    slices = {buffer: _slice(accesses[buffer], number, 1 + (buffer in rows)) for buffer in buffers}
    alone = {
        buffer: reshaped(buffer, [int(extent) for extent in buffer.ty.shape[len(slices[buffer]) :]])
        for buffer in buffers
    }
    body = move_accesses(block.body, alone, lambda buffer, indices: indices[len(slices[buffer]) :])
    kernel = kernel_of(list(alone.values()), statements(body), block.alloc_buffers, None).with_attr(
        "tirx.noalias", True
    )
    if uses(kernel.body, number):
        raise NoMatch("a kernel of a loop's body computes with the number of the iteration")
    return StageKernel(kernel, buffers, slices, len(written))


def read_in_rows(stages: Sequence[SBlock], number: Var) -> set[Var]:
    """Collect the buffers accessed only in slices by the trip's `number`, in one row each."""
    found: dict[Var, list[Sequence[Expr]]] = {}
    for block in stages:
        for buffer, indices in accesses_of(block).items():
            found.setdefault(buffer, []).extend(indices)
    return {
        buffer
        for buffer, accesses in found.items()
        if len(buffer.ty.shape) > 1
        and all(uses(indices[0], number) and isinstance(indices[1], IntImm) for indices in accesses)
    }


def accesses_of(block: SBlock) -> dict[Var, list[Sequence[Expr]]]:
    """Collect the indices with which a block accesses each buffer that is not its own."""
    found: dict[Var, list[Sequence[Expr]]] = {}
    own = _own(block)
    for load in loads(block.body):
        if load.source not in own:
            found.setdefault(load.source, []).append(load.indices)
    for store in collect(block.body, BufferStore):
        if store.buffer not in own:
            found.setdefault(store.buffer, []).append(store.indices)
    return found


def buffers_written(block: SBlock) -> list[Var]:
    """List the buffers a block writes that are not its own."""
    own = _own(block)
    return list(dict.fromkeys(store.buffer for store in collect(block.body, BufferStore) if store.buffer not in own))


def _own(block: SBlock) -> set[Var]:
    """Collect the buffers of a block and of the blocks inside."""
    return {buffer for each in (block, *collect(block.body, SBlock)) for buffer in each.alloc_buffers}


def slice_index(number: Var, trips: int, direction: int) -> Expr:
    """Return the index of a trip's slice, by the `number` of the trip: from the start, or from the end."""
    return number if direction > 0 else int64(trips - 1) - number


def direction_of(accesses: Sequence[Sequence[Expr]], number: Var, trips: int) -> int | None:
    """Return the direction in which accesses take the slice of a trip; None if they take none, 0 for other forms."""
    indices = [index for each in accesses for index in each if uses(index, number)]
    if not indices:
        return None
    for way in (1, -1):
        if all(tvm_ffi.structural_equal(index, slice_index(number, trips, way)) for index in indices):
            return way
    return 0


def _slice(accesses: Sequence[Sequence[Expr]], number: Var, depth: int) -> tuple[Expr, ...]:
    """Return the first indices of the slice all accesses are in, by the `number` of the trip; nothing for a whole buffer."""
    sliced = [bool(indices) and uses(indices[0], number) for indices in accesses]
    if not any(sliced):
        return ()
    first = tuple(accesses[0][:depth])
    if not all(sliced) or not all(
        tvm_ffi.structural_equal(one, other) for indices in accesses for one, other in zip(first, indices)
    ):
        raise NoMatch("a buffer is read in slices of other iterations")
    return first
