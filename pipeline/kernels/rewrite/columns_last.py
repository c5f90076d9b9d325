"""Choose channels last for the rings of a region that takes columns: a few columns of planes fill no vector.

ring[n, c, y, 0:3]  ─►  ring[n, y, 0:3, c]       vectors along channels, in depthwise convolutions too
"""

from __future__ import annotations

from tvm.tirx import PrimFunc

from ...memory.streaming.region import Region
from ...tir.index_grid import NoMatch
from ..lower.lower import Lowered
from .channels_last import CHANNELS, follow_tensors, move_results, with_channels_last


def region_with_columns_last(lowered: Lowered, region: Region) -> tuple[Lowered, Region]:
    """Store rings of floats with channels last if all kernels allow it; axes of the stages follow."""
    if region.replacement is not None or lowered.machine.lanes == 1:
        return lowered, region
    program = lowered.program
    for stage in region.stages:
        step = program.steps[stage.step]
        rows = step.writes[0] if stage.operand is None else step.reads[stage.operand]
        if stage.axis != len(program.tensors[rows].shape) - 1 or stage.axis <= CHANNELS:
            return lowered, region
    inside = {stage.step for stage in region.stages}

    def wanted(number: int, step: int) -> bool:
        tensor = program.tensors[number]
        fills_vectors = tensor.dtype == "float32" and tensor.shape[CHANNELS] >= lowered.machine.lanes
        return step in inside and number in region.rings and fills_vectors

    moved = move_results(lowered, wanted, _possible)
    return moved, follow_tensors(region, lowered, moved)


def _possible(kernel: PrimFunc, places: frozenset[int], weights: frozenset[int]) -> bool:
    try:
        with_channels_last(kernel, places, weights)
    except NoMatch:
        return False
    return True
