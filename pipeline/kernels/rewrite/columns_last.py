"""Choose channels last for the rings of a region that takes columns: a few columns of planes fill no vector.

ring[n, c, y, 0:3]  ─►  ring[n, y, 0:3, c]       vectors along channels, in depthwise convolutions too
"""

from __future__ import annotations

from ...memory.streaming.region import Region
from ...tir.index_grid import Unknown
from ..lower.lower import Lowered
from .channels_last import (
    CHANNELS,
    channels_last,
    follow_tensors,
    movable_results,
    rewritable,
    whole_kernel,
    with_channels_last,
)


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
    inside, last = {stage.step for stage in region.stages}, lowered.last
    writers = {
        tensor: step
        for tensor, step in movable_results(program).items()
        if step in inside and tensor in region.rings and tensor not in last and _fills_vectors(lowered, tensor)
    }
    chosen = rewritable(lowered, writers, _possible)
    if not chosen:
        return lowered, region
    moved = channels_last(lowered, chosen)
    return moved, follow_tensors(region, lowered, moved)


def _fills_vectors(lowered: Lowered, number: int) -> bool:
    tensor = lowered.program.tensors[number]
    return tensor.dtype == "float32" and tensor.shape[CHANNELS] >= lowered.machine.lanes


def _possible(lowered: Lowered, kernel: str, places: frozenset[int], weights: frozenset[int]) -> bool:
    try:
        with_channels_last(whole_kernel(lowered, kernel), places, weights)
    except Unknown:
        return False
    return True
