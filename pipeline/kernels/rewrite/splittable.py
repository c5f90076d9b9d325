"""Find all ways to split the kernels of a program, once per structure; kept in the store for other targets.

"splits 1f3a…": {"rows": [{"axis": 2, "extent": 14, "operands": [[0, {"axis": 2, "low": [0, 2, …], …}]], …}], …}
"""

from __future__ import annotations

from dataclasses import replace

from tvm.tirx import PrimFunc

from ...memory.streaming.region import Region
from ...memory.validation.validate_region import validate_region
from ...program import Loop, Splits, Step
from ...support.result_store import shared_store
from ...tir.loop_nests import iterations
from ...tir.memoise import memoise_by_structure
from ...tir.row_window import rows_of
from ...tir.structural_key import structural_key
from ..lower.lower import Lowered
from ..schedule.candidates import is_scheduled
from .partial_sum import sums_over
from .window_taps import taps_along

#: largest sum of a kernel's extents for splits in the store: their size grows by them
MOST_KEPT = 4096


def splits_of(lowered: Lowered, among: slice = slice(None)) -> dict[str, Splits]:
    """Find the row windows and partial sums of all kernels, or of the steps `among`."""
    steps = {step.kernel: step for step in lowered.program.steps[among]}
    return {
        name: _whole(lowered, step)
        if isinstance(step, Loop) or name in lowered.rows
        else _splits(lowered.kernels[name], len(step.writes))
        for name, step in steps.items()
    }


def _whole(lowered: Lowered, step: Loop | Step) -> Splits:
    """Count the iterations of a loop's kernels, or of one that computes rows by number: neither is split again."""
    return Splits(
        (),
        (),
        sum(iterations(lowered.kernels[each.kernel].body) * runs for _, each, runs in lowered.program.calls_of(step)),
    )


def checked_region(lowered: Lowered, region: Region) -> tuple[Lowered, Region]:
    """Replay a region of the kernels in their present layout, see `validate_region`; return both. Raises PlanError, always a bug."""
    steps = slice(region.stages[0].step, region.stages[-1].step + 1)
    validate_region(lowered.program, splits_of(lowered, steps), region)
    return lowered, region


@memoise_by_structure
def _splits(kernel: PrimFunc, results: int) -> Splits:
    if sum(int(extent) for param in kernel.params for extent in getattr(param.ty, "shape", ())) > MOST_KEPT:
        return _find_splits(kernel, results)
    key = f"splits {structural_key(kernel, results)}"
    return shared_store().get_or_make_as(Splits, key, lambda: _find_splits(kernel, results))


def _find_splits(kernel: PrimFunc, results: int) -> Splits:
    work = iterations(kernel.body)
    if results != 1 or is_scheduled(kernel):
        return Splits((), (), work)
    *operands, result = kernel.params
    rows = [rows_of(kernel, axis) for axis, extent in enumerate(result.ty.shape) if int(extent) > 1]
    sums = [
        (number, axis)
        for number, operand in enumerate(operands)
        for axis, extent in enumerate(operand.ty.shape)
        if int(extent) > 1 and sums_over(kernel, number, axis)
    ]
    return Splits(
        tuple(replace(each, taps=taps_along(kernel, each)) for each in rows if each is not None), tuple(sums), work
    )
