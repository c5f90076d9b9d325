"""Rewrite a pooling to take one row of its window at a time: it accumulates into its result, row by row of its operand.

    result[c, y, x] = max over i, j of data[c, 2 y + i, 2 x + j]                      the kernel
    tap i ─► result[c, y, x] = max(result[c, y, x], max over j of data[c, 2 y + i, …])   from row 2 y + i alone

The first tap starts afresh. Each takes its row as soon as that is there, so fewer rows wait.
"""

from __future__ import annotations

from collections.abc import Sequence

from tvm import tirx
from tvm.ir import Expr, TensorLoad, Var
from tvm.s_tir import SBlock
from tvm.tirx import BufferStore, IterVar, PrimFunc, Stmt

from ...program import Follows, Rows
from ...tir.expressions import COMBINED, combined_term, loads, replaced, uses
from ...tir.index_grid import NoMatch
from ...tir.inlining import inlined
from ...tir.loop_nests import blocks_of, covers, fresh_axes, int64, kernel_of, nest_of, nests_in, simple
from ...tir.row_window import row_window, rows_of

_REDUCE = 2
#: most taps: each is code of its own
MOST_TAPS = 8


def taps_along(kernel: PrimFunc, rows: Rows) -> tuple[Follows, ...]:
    """Return the rows each tap needs of the only operand that follows; empty if the kernel has no taps along them."""
    if len(rows.operands) != 1:
        return ()
    try:
        _, axis = _window_axis(inlined(kernel), rows.axis)
        found = [rows_of(_tap(kernel, rows.axis, number), rows.axis) for number in range(int(axis.dom.extent))]
    except NoMatch:
        return ()
    follows = [each.follows(rows.operands[0][0]) if each is not None else None for each in found]
    return tuple(each for each in follows if each is not None) if None not in follows else ()


def tap_window(kernel: PrimFunc, axis: int, tap: int) -> PrimFunc:
    """Rewrite `kernel` to accumulate one tap into one row of its result along `axis`.

    Takes the number of the row, int64, the operands, the result so far unless `tap` is 0, and the result, which may
    alias it. Raises NoMatch if `taps_along` is empty.
    """
    return row_window(_tap(kernel, axis, tap), axis, 1)


def _window_axis(kernel: PrimFunc, axis: int) -> tuple[SBlock, IterVar]:
    """Return the last block of a kernel, a reduction, and its axis along the window's rows. Raises NoMatch."""
    *_, total = blocks_of(kernel)
    store = total.body
    reads = [load for load in loads(store.value) if not load.source.same_as(store.buffer)]
    if total.init is None:
        raise NoMatch("the last block is not a reduction")
    if type(store.value).__name__ not in COMBINED or not covers(total) or not store.buffer.same_as(kernel.params[-1]):
        raise NoMatch("the reduction is not a sum, max or min over the whole result")
    row = store.indices[axis]
    indices = [index for load in reads for index in simple(total, load.indices)]
    along = [isinstance(row, Var) and uses(index, row) for index in indices]
    found = [
        each
        for each in total.iter_vars
        if int(each.iter_type) == _REDUCE
        and any(uses(index, each.var) for index, moves in zip(indices, along) if moves)
    ]
    if len(found) != 1 or not 2 <= int(found[0].dom.extent) <= MOST_TAPS:
        raise NoMatch("the rows of the window are not one axis, or too many")
    if any(uses(index, found[0].var) for index, moves in zip(indices, along) if not moves):
        raise NoMatch("each row of the window has its weights")
    return total, found[0]


def _tap(kernel: PrimFunc, axis: int, number: int) -> PrimFunc:
    """Build the kernel of one tap, for all rows."""
    kernel = inlined(kernel)
    total, window = _window_axis(kernel, axis)
    every, values = fresh_axes(total)
    axes = [each for each in every if not each.var.same_as(values[window.var])]
    values[window.var] = int64(number)
    store, init = replaced(total.body, values), replaced(total.init, values)
    *operands, result = kernel.params
    before = tirx.decl_buffer(result.ty.shape, result.ty.dtype, "before")
    start = tirx.BufferLoad(before, init.indices) if number else init.value
    nests = [*nests_in(kernel)[:-1], _reduce(axes, store, start)]
    own = [block.body.buffer for block in blocks_of(kernel)[:-1]]
    return kernel_of([*operands, *([before] if number else []), result], nests, own, kernel.attrs)


def _reduce(axes: Sequence[IterVar], store: BufferStore, start: Expr) -> Stmt:
    """Build the nest of a tap: a reduction from `start`, or an element-wise block if nothing is left to reduce."""
    if any(int(each.iter_type) == _REDUCE for each in axes):
        return nest_of(axes, "tap", store, BufferStore(store.buffer, start, store.indices))
    value = combined_term(store)
    value = COMBINED[type(store.value).__name__](start, value) if isinstance(start, TensorLoad) else value
    return nest_of(axes, "tap", BufferStore(store.buffer, value, store.indices))
