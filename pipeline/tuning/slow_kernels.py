"""Name the kernels of a program far below the roofline, by the model of cycles; `passfit profile --kernels` times them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..memory.footprint import SlowKernel
from ..targets import Target
from ..targets.cycles import core_of, kernel_cycles, least_cycles
from ..tir.counts.operation_counts import kernel_work, operations_of_elements

if TYPE_CHECKING:
    from ..kernels.lower.lower import Lowered

#: least share of the time of a run, and part of the roofline, below which a kernel is slow
SHARE, ROOFLINE = 0.05, 0.1


def slow_kernels(lowered: Lowered, target: Target) -> tuple[SlowKernel, ...]:
    """Return the slow kernels of a scheduled program, the most time first.

    The least time is that of the operations at full vectors, or of the bytes of operands and results.
    """
    core = core_of(target.architecture)
    works = {name: kernel_work(kernel, target.machine, core) for name, kernel in lowered.kernels.items()}
    cycles = {name: kernel_cycles(work, core) for name, work in works.items()}
    total = sum(cycles[step.kernel] * runs for _, step, runs in lowered.program.calls())
    found = []
    calls = (
        (number, call) for number, step in enumerate(lowered.program.steps) for call in lowered.program.calls_of(step)
    )
    for number, (_, step, runs) in calls:
        share = cycles[step.kernel] * runs / total
        if share <= SHARE:
            continue
        least = least_cycles(
            operations_of_elements(lowered.kernels[step.kernel]) / target.machine.lanes, works[step.kernel].nbytes, core
        )
        reached = least / (cycles[step.kernel] - core.call)
        if reached < ROOFLINE:
            found.append(SlowKernel(number, step.kernel, tuple(step.nodes), round(share, 4), round(reached, 4)))
    return tuple(sorted(found, key=lambda each: (-each.share, each.step)))
