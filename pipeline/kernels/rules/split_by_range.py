"""Split kernels that select by position, as concatenations, into one branch-free nest per range.

result[c, x] = a[c, x] if c < 64 else b[c - 64, x]            for c in 0…64: result[c, x] = a[c, x]
                                                              for c in 64…96: result[c, x] = b[c - 64, x]
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise, product
from math import prod

import numpy as np
import tvm_ffi
from tvm import tirx
from tvm.ir import Call, Expr, Var
from tvm.s_tir import SBlock
from tvm.tirx import GE, GT, LE, LT, And, IntImm, Not, Or, PrimFunc, Select, Stmt
from tvm.tirx.analysis import undefined_vars

from ...tir.expressions import fold_choice, has_condition, replaced, walk
from ...tir.index_grid import NoMatch, holds_along
from ...tir.inlining import inlined
from ...tir.loop_nests import blocks_of, fresh_axes, kernel_of, nest_of, stores_at_axes

_COMPARISONS = (LT, LE, GT, GE)
#: limit over all axes together: more would be more code than it is worth
_MOST_RANGES = 32

#: comparisons on one axis each: the expression, its axis, and a bool array of the values it holds for
_Known = list[tuple[Expr, Var, np.ndarray]]


def split_by_range(kernel: PrimFunc) -> PrimFunc | None:
    """Split an unscheduled `kernel` into nests without position selects; None without any, or for another form."""
    try:
        if not any(has_condition(block.body.value) for block in blocks_of(kernel)):
            return None
        kernel = inlined(kernel)  # with its own parameters
        blocks = blocks_of(kernel)
    except NoMatch:
        return None
    if len(blocks) != 1 or blocks[0].init is not None or not has_condition(blocks[0].body.value):
        return None
    (block,) = blocks
    if not stores_at_axes(block):
        return None
    known = list(_comparisons(block))
    cuts = [
        _cuts(int(axis.dom.extent), [holds for _, var, holds in known if var.same_as(axis.var)])
        for axis in block.iter_vars
    ]
    if not 1 < prod(len(each) - 1 for each in cuts) <= _MOST_RANGES:
        return None
    nests = [_nest(block, ranges, known) for ranges in product(*(list(pairwise(each)) for each in cuts))]
    return kernel_of(kernel.params, nests, [], kernel.attrs)


def _comparisons(block: SBlock) -> Iterator[tuple[Expr, Var, np.ndarray]]:
    extents = {axis.var: int(axis.dom.extent) for axis in block.iter_vars}
    for each in walk(block.body.value):
        if not isinstance(each, _COMPARISONS):
            continue
        used = list(undefined_vars(each))
        if len(used) != 1 or used[0] not in extents:
            continue
        try:
            yield each, used[0], holds_along(each, used[0], extents[used[0]])
        except NoMatch:
            continue


def _cuts(extent: int, comparisons: Sequence[np.ndarray]) -> list[int]:
    """Return the range starts between which no comparison changes, and the end."""
    changes = {int(place) + 1 for holds in comparisons for place in np.flatnonzero(holds[1:] != holds[:-1])}
    return [0, *sorted(changes), extent]


def _nest(block: SBlock, ranges: Sequence[tuple[int, int]], known: _Known) -> Stmt:
    starts = {axis.var: start for axis, (start, _) in zip(block.iter_vars, ranges)}

    def comparison(each: Expr) -> Expr:
        held = (bool(holds[starts[var]]) for one, var, holds in known if one.same_as(each))
        return next((tirx.const(one, "bool") for one in held), each)

    def negation(each: Not) -> Expr:
        return tirx.const(not int(each.a), "bool") if isinstance(each.a, IntImm) else each

    decide = [
        (_COMPARISONS, comparison),
        (And, lambda each: tirx.all(each.a, each.b)),
        (Or, lambda each: tirx.any(each.a, each.b)),
        (Not, negation),
        ((Call, Select), fold_choice),
    ]
    store = tvm_ffi.structural_map(block.body, decide)
    axes, moved = fresh_axes(block, {axis.var: end - start for axis, (start, end) in zip(block.iter_vars, ranges)})
    moved = {old: new + starts[old] if starts[old] else new for old, new in moved.items()}
    return nest_of(axes, block.name_hint, replaced(store, moved))
