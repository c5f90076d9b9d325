"""Choose the schedule of a kernel that continues a sum in place: no element so far is read once it is written.

    result[0:8] = so_far[0:8] + acc0;   result[6:14] = so_far[6:14] + acc1        adds to elements 6 and 7 twice

Vectors of most kernels may overlap, as they compute the same elements again. If `so_far` is the result itself, they may not,
unless all of them are read before one is written.
"""

from __future__ import annotations

from collections.abc import Sequence

from tvm.ir import Expr, Var
from tvm.tirx import PrimFunc

from ...program import Overlay
from ...tir.expressions import replaced
from ...tir.in_place.analysis import analyse_sharing, reads_of, takes_addresses
from ...tir.in_place.ordered_elements import end_shift
from ...tir.index_grid import NoMatch
from ...tir.loop_nests import int64, move_accesses, resized
from ...tir.row_window import takes_a_row
from ...tir.stores import stores
from .candidates import RULE_WORKSPACE, Schedule, Schedules, fits


def schedule_in_place(found: Schedules, operand: int) -> Schedule:
    """Return the fastest of a kernel's schedules whose parameter `operand` may be the result; the kernel's own loops if none is known to.

    These read and write an element at a time: they are last.
    """
    last = None
    for last in found.candidates():
        if fits(last.workspace, last.threads, RULE_WORKSPACE, RULE_WORKSPACE) and continues_in_place(
            last.kernel, operand
        ):
            return last
    assert last is not None
    return last


def continues_in_place(kernel: PrimFunc, operand: int) -> bool:
    """Return whether an operand may be the result: of its shape, or all rows of a result that is one of them."""
    so_far, result = kernel.params[operand], kernel.params[-1]
    params, body = list(kernel.params), kernel.body
    if takes_a_row(kernel):
        # any row but the first, which has no sum so far
        body, params = replaced(body, {params[0]: int64(1)}), params[1:]
    extents = [[int(extent) for extent in each.ty.shape] for each in (so_far, result)]
    differ = [axis for axis, (all_rows, rows) in enumerate(zip(*extents, strict=True)) if all_rows != rows]
    if differ:
        (axis,) = differ
        whole = resized(result, axis, extents[0][axis])

        def at(_: Var, indices: Sequence[Expr]) -> list[Expr]:
            return [index + 1 if place == axis else index for place, index in enumerate(indices)]

        body, params[-1] = move_accesses(body, {result: whole}, at), whole
    read = operand - (len(kernel.params) - len(params))
    alone = PrimFunc(params, body)
    return Overlay(read, 0) in analyse_sharing(alone).in_place or _is_read_first(alone, read)


def _is_read_first(kernel: PrimFunc, operand: int) -> bool:
    """Return whether accumulators start from an operand: each element is read before the result's is written."""
    so_far, result = kernel.params[operand], kernel.params[-1]
    try:
        found = stores(kernel.body)
    except NoMatch:
        return False
    shift = end_shift(kernel.body, so_far, result, found, reads_of(found, so_far))
    return not takes_addresses(kernel.body) and shift == 0
