"""Unroll small windows that are summed beside another sum: the rules schedule one sum, and inline expressions into its result.

sum[c, y, x] = Σ w[c, k] · data[k, y, x]
pool[c, y, x] = max over i, j of other[c, 2 y + i, 2 x + j]            a shortcut, pooled
result = sum + pool

pool[c, y, x] = max(max(other[c, 2 y, 2 x], other[c, 2 y, 2 x + 1]), …)   element-wise now
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from math import prod

from tvm.ir import Var
from tvm.s_tir import SBlock
from tvm.tirx import BufferStore, PrimFunc, Stmt

from ....tir.expressions import COMBINED, combined_term, loads, reads, replaced
from ....tir.inlining import inlined, repeats
from ....tir.loop_nests import fresh_axes, int64, kernel_of, nest_of, nests_in
from ....tir.switches import switchable
from .on_blocks import on_blocks

_REDUCE = 2
#: most elements of a window that is unrolled
MOST = 9


@switchable
@on_blocks
def unroll_windows(kernel: PrimFunc, blocks: Sequence[SBlock]) -> PrimFunc | None:
    """Return `kernel` with expressions for its small windows beside a larger sum.

    A window that another sum reads repeatedly, as a product reads what is pooled for each of its filters, stays.
    """
    sums = [block for block in blocks if block.init is not None]
    made = {block.body.buffer for block in sums}
    small = [
        block
        for block in sums
        if _elements(block) <= MOST and _is_window(block, made) and not _read_repeatedly(block.body.buffer, sums)
    ]
    if not small or len(small) == len(sums):
        return None
    nests = [
        _unrolled(block) if any(block is each for each in small) else nest
        for block, nest in zip(blocks, nests_in(kernel))
    ]
    return inlined(kernel_of(kernel.params, nests, kernel.body.block.alloc_buffers, kernel.attrs))


def _elements(block: SBlock) -> int:
    """Count the terms of an element of a sum."""
    return prod(int(axis.dom.extent) for axis in block.iter_vars if int(axis.iter_type) == _REDUCE)


def _is_window(block: SBlock, sums: Set[Var]) -> bool:
    """Return whether a reduction combines one operand, as a pooling does, and none of the `sums`."""
    store = block.body
    read = {load.source for load in loads(store.value)} - {store.buffer}
    return type(store.value).__name__ in COMBINED and len(read) == 1 and not read & sums


def _read_repeatedly(window: Var, sums: Sequence[SBlock]) -> bool:
    readers = (each for each in sums if reads(each.body.value, window) and not each.body.buffer.same_as(window))
    return any(repeats(each, window) for each in readers)


def _unrolled(block: SBlock) -> Stmt:
    """Build the nest of a reduction as an element-wise block."""
    axes, values = fresh_axes(block)
    axes = [axis for axis in axes if int(axis.iter_type) != _REDUCE]
    window = [axis for axis in block.iter_vars if int(axis.iter_type) == _REDUCE]
    store = block.body
    term, found = combined_term(store), None
    for number in range(_elements(block)):
        place = {}
        for axis in reversed(window):
            number, at = divmod(number, int(axis.dom.extent))
            place[axis.var] = int64(at)
        value = replaced(term, values | place)
        found = value if found is None else COMBINED[type(store.value).__name__](found, value)
    return nest_of(axes, "window", BufferStore(store.buffer, found, replaced(store.indices, values)))
