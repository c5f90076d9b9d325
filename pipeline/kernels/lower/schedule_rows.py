"""Schedule the kernels of rows of a program, in the order they are called: the first to read a weight chooses its layout.

conv of 4 rows      weight[f, c] ─► weight[f / 16, c, f % 16]
conv of 1 row left                  reads weight[f / 16, c, f % 16]
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Protocol, TypeVar

from tvm.tirx import PrimFunc

from ..schedule.candidates import is_scheduled
from ..weights.read_repacked import read_all_repacked, read_repacked
from ..weights.repack import Repack, free_weights, repack_by_number
from .lower import Lowered
from .row_kernel import RowKernel


class _Chosen(Protocol):
    @property
    def repacks(self) -> tuple[Repack, ...]: ...


_Found = TypeVar("_Found", bound=_Chosen)
#: choose the schedule of a kernel whose parameters of these positions may be repacked
Choose = Callable[[str, PrimFunc, frozenset[int], RowKernel], _Found]


def choose_rows(lowered: Lowered, choose: Choose[_Found]) -> tuple[dict[str, _Found], dict[int, Repack]]:
    """Choose the schedules of the kernels of rows of a program.

    Return them by name, and the layouts that they ask for, by weight number.
    """
    chosen: dict[str, _Found] = {}
    layouts: dict[int, Repack] = {}
    if not lowered.rows:
        return chosen, layouts
    fixed = frozenset(name for name, kernel in lowered.kernels.items() if is_scheduled(kernel))
    free = free_weights(lowered.program, fixed)
    for owner, step, _ in lowered.program.calls():
        rows = lowered.rows.get(step.kernel)
        if rows is None or step.kernel in chosen:
            continue
        kernel, own, first = lowered.kernels[step.kernel], {}, bool(rows.groups)
        for number, tensor in enumerate(step.reads):
            weight = owner.tensors[tensor].weight
            if weight in layouts:
                kernel = read_repacked(kernel, number + first, layouts[weight])
            elif weight in free and rows.groups:
                own[number + first] = weight
        chosen[step.kernel] = choose(step.kernel, kernel, frozenset(own), rows)
        layouts.update((own[each.parameter], each) for each in chosen[step.kernel].repacks)
    return chosen, layouts


def lay_out_weights(lowered: Lowered, layouts: Mapping[int, Repack]) -> Lowered:
    """Lay out weights as kernels of rows read them; the other kernels read these layouts too, those of rows stay."""
    program, weights = repack_by_number(lowered.program, lowered.weights, layouts)
    program, kernels = read_all_repacked(program, lowered.kernels, layouts, lowered.rows)
    return replace(lowered, program=program, kernels=kernels, weights=weights)
