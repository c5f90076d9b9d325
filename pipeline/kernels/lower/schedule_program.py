"""Schedule all kernels of a program within one workspace limit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import replace

from ...program import Program, Step
from ...targets import Machine
from ...tir.in_place.analysis import Sharing
from ...tir.workspace import workspace_bytes
from ..schedule.candidates import Schedule, largest_default, schedules
from ..schedule.summaries import ScheduleSummaries, ScheduleSummary
from ..schedule.tuned import ScheduleRequest
from ..weights.read_repacked import read_all_repacked
from ..weights.repack import repack_weights, repackable_parameters
from .lower import Lowered


def schedule_program(lowered: Lowered) -> tuple[Lowered, int]:
    """Schedule the kernels of a program; return it with its sharing, and the largest workspace left, in bytes.

    Fast schedules use a little workspace. None may use more than the largest of the kernels as TVM made them, so a
    program never needs more than before. Workspace that fits into registers counts as none. Bytes that running threads
    need are included (see `Machine.thread_bytes`). Weights are repacked as their kernel reads them.
    """
    machine, tuning = lowered.machine, lowered.tuning
    lowered = _in_layouts(lowered)
    private = repackable_parameters(lowered.program)
    known = {name: schedules(kernel, private[name], machine) for name, kernel in lowered.kernels.items()}
    most = largest_default((lowered.kernels[name], lambda each=each: each.default) for name, each in known.items())
    chosen = {name: each.within(most, machine.register_bytes) for name, each in known.items()}
    # the plan depends on the rules' choice alone: a tuning costs no byte of ram
    planned = max((each.workspace for each in chosen.values()), default=0)
    calls = Counter(step.kernel for step in lowered.program.steps)
    taken = {
        name: tuning.schedule(
            ScheduleRequest(kernel, private[name], machine, False, chosen[name], max(planned, machine.register_bytes), calls[name])
        )
        for name, kernel in lowered.kernels.items()
    }
    repacks = {name: each.repacks for name, each in taken.items()}
    program, weights = repack_weights(lowered.program, lowered.weights, repacks)
    kernels = {name: each.kernel for name, each in taken.items()}
    scheduled = Lowered(_with_sharing(program, chosen), kernels, weights, machine=machine)
    return scheduled, _workspace(taken.values(), machine)


def summarise_schedules(lowered: Lowered, summaries: ScheduleSummaries) -> tuple[Lowered, int]:
    """Predict sharing and workspace of `schedule_program` without tuning; keep kernels and weights unscheduled."""
    lowered = _in_layouts(lowered)
    chosen = summaries.chosen(lowered.kernels, repackable_parameters(lowered.program), lowered.machine)
    return replace(lowered, program=_with_sharing(lowered.program, chosen)), _workspace(chosen.values(), lowered.machine)


def _in_layouts(lowered: Lowered) -> Lowered:
    program, kernels = read_all_repacked(lowered.program, lowered.kernels, lowered.layouts)
    return replace(lowered, program=program, kernels=kernels, layouts={})


def _with_sharing(program: Program, chosen: Mapping[str, Schedule | ScheduleSummary]) -> Program:
    return replace(program, steps=tuple(_sharing_step(step, chosen[step.kernel].sharing) for step in program.steps))


def _sharing_step(step: Step, found: Sharing) -> Step:
    if found.results != len(step.writes):
        return step
    return replace(step, in_place=found.in_place, copies=found.copies)


def _workspace(chosen: Collection[Schedule | ScheduleSummary], machine: Machine) -> int:
    needed = [each.workspace for each in chosen if each.workspace > machine.register_bytes * each.threads]
    threads = machine.thread_bytes if any(each.threads > 1 for each in chosen) else 0
    return max(needed, default=0) + threads


def largest_default_workspace(lowered: Lowered) -> int:
    """Count the bytes of the largest workspace among the kernels as TVM made them."""
    return max((workspace_bytes(kernel) for kernel in lowered.kernels.values()), default=0)
