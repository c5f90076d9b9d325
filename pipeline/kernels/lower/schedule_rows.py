"""Schedule the kernels of rows of a program, in the order they are called: the first to read a weight chooses its layout.

    conv of 4 rows      weight[f, c] ─► weight[f / 16, c, f % 16]
    conv of 1 row left                  reads weight[f / 16, c, f % 16]
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Generic, NamedTuple, Protocol, TypeVar

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


class ScheduledRows(NamedTuple, Generic[_Found]):
    """Hold the schedules of the kernels of rows by name, and the program with its weights laid out as they read them.

    Its other kernels read these layouts too; those of rows are as they were.
    """

    chosen: dict[str, _Found]
    lowered: Lowered


def schedule_rows(lowered: Lowered, choose: Choose[_Found]) -> ScheduledRows[_Found]:
    """Schedule the kernels of rows of a program."""
    if not lowered.rows:
        return ScheduledRows({}, lowered)
    program = lowered.program
    free = free_weights(program, frozenset(name for name, kernel in lowered.kernels.items() if is_scheduled(kernel)))
    layouts: dict[int, Repack] = {}
    chosen: dict[str, _Found] = {}
    for owner, step, _ in program.calls():
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
        layouts |= {own[each.parameter]: each for each in chosen[step.kernel].repacks}
    program, weights = repack_by_number(program, lowered.weights, layouts)
    program, kernels = read_all_repacked(program, lowered.kernels, layouts, lowered.rows)
    return ScheduledRows(chosen, replace(lowered, program=program, kernels=kernels, weights=weights))
