"""Choose channels last for results of integers, on machines that multiply neighbours along channels.

Kernels change with their operands: a result keeps its layout if one of them cannot read or write the other.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from tvm.tirx import PrimFunc

from ...memory.streaming.region import Region
from ...targets import Machine
from ...tir.index_grid import NoMatch
from ...tir.loop_nests import blocks_of
from ...tir.memoise import memoise_by_structure
from ...tir.switches import switchable
from ..lower.lower import Lowered
from ..rules.flatten_axes import flatten_axes
from ..rules.integer.micro_kernel import MicroKernel
from ..rules.integer.rows import nchw_pmaddwd
from ..rules.rule import Rule
from ..rules.sliding_window import sliding_windows
from ..schedule.candidates import RULES
from .channels_last import CHANNELS, channels_last, movable_results, own_weights, with_channels_last

_DTYPES = ("int8", "uint8")
#: rules for products of integers with channels last
_PRODUCTS: tuple[Rule, ...] = tuple(
    rule for rule in RULES if isinstance(rule, MicroKernel) and rule is not nchw_pmaddwd
)


@switchable
def integers_last(lowered: Lowered, steps: Collection[int], kept: Collection[int] = ()) -> Lowered:
    """Store integer results of `steps`, by number, with channels last if all kernels can write and read them so.

    The tensors `kept`, and those of loops, stay as they are.
    """
    program, kernels, machine = lowered.program, lowered.kernels, lowered.machine
    if not (machine.pmaddwd or machine.smull_sadalp or machine.dots):
        return lowered
    stay = lowered.last | set(kept)
    chosen = {
        tensor: step
        for tensor, step in movable_results(program).items()
        if step in steps and program.tensors[tensor].dtype in _DTYPES and tensor not in stay
    }
    own = own_weights(program)
    again = True
    while again:
        again = False
        for step in program.steps:
            tensors = (*step.reads, *step.writes)
            places = frozenset(n for n, tensor in enumerate(tensors) if tensor in chosen)
            if not places:
                continue
            if step.kernel not in kernels or not _may_move(kernels[step.kernel], places, own[step.kernel], machine):
                again = True
                for place in places:
                    chosen.pop(tensors[place], None)
    return channels_last(lowered, chosen.values()) if chosen else lowered


def region_with_integers_last(lowered: Lowered, region: Region) -> tuple[Lowered, Region]:
    """Store integers of a region of rows with channels last; axes of its stages follow their tensors.

    Shapes do not tell which: a tensor of as many channels as rows and columns keeps its own.
    """
    if region.replacement is not None or any(stage.axis <= CHANNELS for stage in region.stages):
        return lowered, region
    moved = integers_last(lowered, {stage.step for stage in region.stages})
    stages, changed = [], moved.last - lowered.last
    for stage in region.stages:
        step = lowered.program.steps[stage.step]
        tensor = step.writes[0] if stage.operand is None else step.reads[stage.operand]
        stages.append(replace(stage, axis=stage.axis - 1) if tensor in changed else stage)
    return moved, replace(region, stages=tuple(stages))


@memoise_by_structure
def _may_move(kernel: PrimFunc, places: frozenset[int], weights: frozenset[int], machine: Machine) -> bool:
    """Return whether a kernel may be rewritten, and is no slower then: most of a search, were it not remembered.

    Sums of floats keep their order, by which machines that keep planes add too.
    """
    try:
        moved, repacks = with_channels_last(kernel, places, weights)
        sums = [str(block.body.value.ty.dtype) for block in blocks_of(kernel) if block.init is not None]
    except NoMatch:
        return False
    if any("float" in each for each in sums):
        return False
    free = weights - {each.parameter for each in repacks}
    planes = (*_PRODUCTS, sliding_windows) if machine.lanes > 1 else _PRODUCTS  # lines of planes are for vectors
    return (
        not sums or _any_matches(_PRODUCTS, moved, free, machine) or not _any_matches(planes, kernel, weights, machine)
    )


def _any_matches(rules: Sequence[Rule], kernel: PrimFunc, weights: frozenset[int], machine: Machine) -> bool:
    flat = flatten_axes(kernel, weights)
    return any(next(rule(flat, weights, machine), None) is not None for rule in rules)
