"""Find the place of an operand in a larger result that keeps its elements: those read elsewhere too are still there.

for i: y[i] = x[abs(i - 2)]            y = x2 x1 x0 x1 x2 x3 …        x may lie in y, two elements in
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator

import numpy as np
from tvm.ir import TensorLoad, Var
from tvm.tirx import FloatImm, IntImm

from ..index_grid import Mask, NoMatch, chunks
from ..stores import Store, leaves


def kept_shift(operand: Var, result: Var, found: Collection[Store]) -> int | None:
    """Return the shift, in elements, of an operand in a result that only copies it; None if there is none.

    An element read for other places must be copied to its own. Elements of the result are written once at most.
    """
    if (
        math.prod(map(int, operand.ty.shape)) >= math.prod(map(int, result.ty.shape))
        or operand.ty.dtype != result.ty.dtype
    ):
        return None
    copies = [
        (store, leaf) for store in found if store.buffer.same_as(result) for leaf in leaves(store.value, store.masks)
    ]
    if not all(isinstance(each, (TensorLoad, IntImm, FloatImm)) for _, (each, _) in copies):
        return None
    try:
        moves = [
            move for store, (each, masks) in copies if isinstance(each, TensorLoad) and each.source.same_as(operand)
            for move in _moves(store, each, masks)
        ]  # fmt: skip
    except NoMatch:
        return None
    sources, shifts = (np.concatenate(parts) for parts in zip(*moves)) if moves else (np.zeros(0, int),) * 2
    return commonest_kept(sources, shifts) if shifts.size else None


def commonest_kept(sources: np.ndarray, shifts: np.ndarray) -> int | None:
    """Return the commonest of `shifts`, the least of several.

    None if an element moves by others, but not by it. int64[n] each, the elements moved and how far. Counts instead of sorting: n is the size of the result.
    """
    least = shifts.min()
    shift = int(least + np.bincount(shifts - least).argmax())
    stays, numbers = shifts == shift, sources - sources.min()
    kept = np.zeros(numbers.max() + 1, bool)
    kept[numbers[stays]] = True
    return shift if kept[numbers[~stays]].all() else None


def _moves(store: Store, load: TensorLoad, masks: tuple[Mask, ...]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the elements loaded, by number, and how far each moves."""
    for grid in chunks(store.loops, store.bindings):
        # a condition on data raises NoMatch: a copy that may not happen keeps nothing
        where = np.ones(grid.shape, bool)
        for condition, holds in masks:
            where &= grid.holds(condition) == holds
        source, place = (
            np.broadcast_to(grid.flat(at.indices, of), grid.shape)
            for at, of in ((load, load.source), (store, store.buffer))
        )
        yield source[where], (place - source)[where]
