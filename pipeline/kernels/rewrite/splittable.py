"""Find all ways to split the kernels of a program, once per structure."""

from __future__ import annotations

from dataclasses import replace

from tvm.tirx import PrimFunc

from ...program import Splits
from ...tir.loop_nests import iterations
from ...tir.memoise import memoise_by_structure
from ...tir.row_window import rows_of
from ..lower.lower import Lowered
from .partial_sum import sums_over
from .window_taps import taps_along


def splits_of(lowered: Lowered, among: slice = slice(None)) -> dict[str, Splits]:
    """Find the row windows and partial sums of all kernels, or of the steps `among`."""
    steps = {step.kernel: step for step in lowered.program.steps[among]}
    return {name: _splits(lowered.kernels[name], len(step.writes)) for name, step in steps.items()}


@memoise_by_structure
def _splits(kernel: PrimFunc, results: int) -> Splits:
    work = iterations(kernel.body)
    if results != 1:
        return Splits((), (), work)
    *operands, result = kernel.params
    rows = [rows_of(kernel, axis) for axis, extent in enumerate(result.ty.shape) if int(extent) > 1]
    sums = [
        (number, axis)
        for number, operand in enumerate(operands)
        for axis, extent in enumerate(operand.ty.shape)
        if int(extent) > 1 and sums_over(kernel, number, axis)
    ]
    return Splits(tuple(replace(each, taps=taps_along(kernel, each)) for each in rows if each is not None), tuple(sums), work)
