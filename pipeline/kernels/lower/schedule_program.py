"""Schedule all kernels of a program within one workspace limit, and give each a workspace in the program."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from tvm.tirx import PrimFunc

from ...memory.placement.plan_loop import plan_loop
from ...program import Loop, Program, Step
from ...program.workspaces import with_workspaces
from ...targets import Machine
from ...tir.arena_workspace import with_workspace_parameter
from ...tir.in_place.analysis import Sharing
from ...tir.workspace import workspace_bytes
from ..schedule.candidates import Schedule, schedules
from ..schedule.largest_default import largest_default
from ..schedule.summaries import ScheduleSummaries, ScheduleSummary
from ..schedule.tuned import ScheduleRequest
from ..weights.read_repacked import read_all_repacked
from ..weights.repack import repack_weights, repackable_parameters
from .loops import with_loops
from .lower import Lowered


def schedule_program(lowered: Lowered) -> tuple[Lowered, int]:
    """Schedule the kernels of a program; return it with its sharing, and the bytes of workspace beside the arena.

    Fast schedules use a little workspace. None may use more than the largest of the kernels as TVM made them, so a
    program never needs more than before. Workspace that fits into registers counts as none. The rest is a buffer of the
    program, or for machines with threads lies beside the arena: then bytes that running threads need are included (see
    `Machine.thread_bytes`). Kernels in loops are scheduled like all others. Weights are repacked as their kernel reads them.
    """
    machine, tuning = lowered.machine, lowered.tuning
    lowered = with_loops(_in_layouts(lowered))
    private = repackable_parameters(lowered.program)
    known = {name: schedules(kernel, private[name], machine) for name, kernel in lowered.kernels.items()}
    most = largest_default((lowered.kernels[name], lambda each=each: each.default) for name, each in known.items())
    chosen = {name: each.within(most, machine.register_bytes) for name, each in known.items()}
    # the plan depends on the rules' choice alone: a tuning costs no byte of ram
    placed = _placed(chosen, machine)
    beside = max((each.workspace for name, each in chosen.items() if name not in placed), default=0)
    calls = Counter[str]()
    for call in lowered.program.calls():
        calls[call.step.kernel] += call.runs
    taken = {
        name: tuning.schedule(
            ScheduleRequest(kernel, private[name], machine, False, chosen[name], max(placed.get(name, beside), machine.register_bytes), calls[name])
        )
        for name, kernel in lowered.kernels.items()
    }
    repacks = {name: each.repacks for name, each in taken.items()}
    program, weights = repack_weights(lowered.program, lowered.weights, repacks)
    program = _planned(program, chosen, placed)
    kernels = {name: _with_workspace(taken[name].kernel, placed.get(name), machine) for name in _called(program, taken)}
    return Lowered(program, kernels, weights, machine=machine), _beside(taken.values(), machine)


def summarise_schedules(lowered: Lowered, summaries: ScheduleSummaries) -> tuple[Lowered, int]:
    """Predict sharing and workspace of `schedule_program` without tuning; keep kernels and weights unscheduled."""
    lowered = with_loops(_in_layouts(lowered))
    chosen = summaries.chosen(lowered.kernels, repackable_parameters(lowered.program), lowered.machine)
    program = _planned(lowered.program, chosen, _placed(chosen, lowered.machine))
    kernels = {name: lowered.kernels[name] for name in _called(program, lowered.kernels)}
    return replace(lowered, program=program, kernels=kernels), _beside(chosen.values(), lowered.machine)


def figures_of_schedules(
    planned: Lowered, summaries: ScheduleSummaries, name: str, figure: Callable[[PrimFunc], Any]
) -> dict[str, Any]:
    """Compute `figure`, a JSON value, of each kernel scheduled by rule; keep it under `name`.

    `planned` is the result of `summarise_schedules`, the kernels are those of `schedule_program` without tuning.
    """
    machine = planned.machine

    def of(schedule: Schedule) -> Any:
        return figure(_with_workspace(schedule.kernel, _placed({"": schedule}, machine).get(""), machine))

    return summaries.figures(planned.kernels, repackable_parameters(planned.program), machine, name, of)


def _with_workspace(kernel: PrimFunc, placed: int | None, machine: Machine) -> PrimFunc:
    return kernel if placed is None else with_workspace_parameter(kernel, placed, machine.register_bytes)


def _in_layouts(lowered: Lowered) -> Lowered:
    program, kernels = read_all_repacked(lowered.program, lowered.kernels, lowered.layouts)
    return replace(lowered, program=program, kernels=kernels, layouts={})


def _planned(program: Program, chosen: Mapping[str, Schedule | ScheduleSummary], placed: Mapping[str, int]) -> Program:
    """Give steps the sharing and the workspaces of their kernels, and loops the plans of their bodies."""
    steps, sizes = list[Loop | Step](), dict(placed)
    for step in program.steps:
        if isinstance(step, Loop):
            planned, sizes[step.kernel] = plan_loop(replace(step, body=_planned(step.body, chosen, placed)))
            steps.append(planned)
        else:
            steps.append(_sharing_step(step, chosen[step.kernel].sharing))
    return with_workspaces(replace(program, steps=tuple(steps)), sizes)


def _called(program: Program, kernels: Iterable[str]) -> list[str]:
    """Return the kernels that a planned program still calls: bodies may need some of their copies no more."""
    called = {call.step.kernel for call in program.calls()}
    return [name for name in kernels if name in called]


def _sharing_step(step: Step, found: Sharing) -> Step:
    if found.results != len(step.writes):
        return step
    return replace(step, in_place=found.in_place, copies=found.copies)


def _placed(chosen: Mapping[str, Schedule | ScheduleSummary], machine: Machine) -> dict[str, int]:
    """Return the bytes of workspace in the arena by kernel: of one thread, since several have a part each."""
    if machine.threads > 1:
        return {}
    return {name: each.workspace for name, each in chosen.items() if each.workspace > machine.register_bytes}


def _beside(chosen: Collection[Schedule | ScheduleSummary], machine: Machine) -> int:
    """Return the bytes of workspace beside the arena."""
    if machine.threads == 1:
        return 0
    needed = (each.workspace for each in chosen if each.workspace > machine.register_bytes * each.threads)
    threads = machine.thread_bytes if any(each.threads > 1 for each in chosen) else 0
    return max(needed, default=0) + threads


def largest_default_workspace(lowered: Lowered) -> int:
    """Count the bytes of the largest workspace among the kernels as TVM made them."""
    return max((workspace_bytes(kernel) for kernel in lowered.kernels.values()), default=0)
