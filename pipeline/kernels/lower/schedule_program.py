"""Schedule all kernels of a program within one workspace limit, and give each a workspace in the program."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from operator import attrgetter
from typing import Any

from tvm.tirx import PrimFunc

from ...memory.placement.plan_loop import plan_loop
from ...program import Loop, Program, Step
from ...program.workspaces import add_workspaces
from ...targets import Machine
from ...tir.arena_workspace import add_workspace_parameter
from ...tir.structural_key import structural_key
from ...tir.workspace import workspace_bytes
from ..schedule.candidates import Schedule, schedules
from ..schedule.largest_default import largest_default
from ..schedule.row_schedules import default_workspace, row_schedule
from ..schedule.summaries import ScheduleSummaries, ScheduleSummary
from ..schedule.tuned import ScheduleRequest
from ..weights.deferred_weights import DeferredWeights
from ..weights.repack import repack_weights, repackable_parameters
from .lower import Lowered
from .row_kernel import RowKernel
from .schedule_rows import choose_rows, lay_out_weights
from .split_taps import split_taps


def schedule_program(lowered: Lowered) -> tuple[Lowered, int]:
    """Schedule the kernels of a program; return it with its sharing, and the bytes of workspace outside the arena.

    Fast schedules use a little workspace. None may use more than the largest of the kernels as TVM made them, so a
    program never needs more than before. Workspace that fits into registers counts as none. The rest is a buffer of the
    program, or for machines with threads is outside the arena: then bytes that running threads need are included (see
    `Machine.thread_bytes`). Kernels in loops are scheduled like all others; those of rows keep the axes of their tensors.
    Weights are repacked as their kernel reads them.
    """
    machine, tuning = lowered.machine, lowered.tuning
    calls = Counter[str]()
    for call in lowered.program.calls():
        calls[call.step.kernel] += call.runs
    by_rule: dict[str, Schedule] = {}

    def tuned(
        name: str, kernel: PrimFunc, own: frozenset[int], found: Schedule, workspace: int, in_rows: bool = False
    ) -> Schedule:
        most = max(workspace, machine.register_bytes)
        return tuning.schedule(ScheduleRequest(kernel, own, machine, in_rows, found, most, calls[name]))

    def of_rows(name: str, kernel: PrimFunc, repackable: frozenset[int], rows: RowKernel) -> Schedule:
        by_rule[name] = found = row_schedule(kernel, repackable, machine, rows.continues)
        fixed = rows.continues or not rows.groups
        return found if fixed else tuned(name, kernel, repackable, found, found.workspace, True)

    in_rows, layouts = choose_rows(lowered, of_rows)
    lowered = lay_out_weights(lowered, layouts)
    plain, private = _plain_kernels(lowered), repackable_parameters(lowered.program)
    known = {name: schedules(kernel, private[name], machine) for name, kernel in plain.items()}
    most = max(
        largest_default(((plain[name], each) for name, each in known.items()), attrgetter("default")),
        _least(by_rule.values()),
    )
    chosen = by_rule | {name: each.within(most, machine.register_bytes) for name, each in known.items()}
    # the plan depends on the rules' choice alone: a tuning costs no byte of ram
    placed = _placed(chosen, machine)
    beside = max((each.workspace for name, each in chosen.items() if name not in placed), default=0)
    taken = in_rows | {
        name: tuned(name, kernel, private[name], chosen[name], placed.get(name, beside))
        for name, kernel in plain.items()
    }
    program, weights = repack_weights(lowered.program, lowered.weights, {name: taken[name].repacks for name in plain})
    program = _planned(program, chosen, placed, lowered.rows)
    kernels = {
        name: _finished(taken[name].kernel, lowered.rows.get(name), placed.get(name), machine)
        for name in _called(program, taken)
    }
    return Lowered(program, dict(sorted(kernels.items())), weights, machine=machine), _beside(taken.values(), machine)


def summarise_schedules(lowered: Lowered, summaries: ScheduleSummaries) -> tuple[Lowered, int]:
    """Predict sharing and workspace of `schedule_program` without tuning; keep kernels unscheduled."""
    machine = lowered.machine
    in_rows, layouts = choose_rows(
        lowered, lambda _, kernel, own, rows: summaries.of_rows(kernel, own, machine, rows.continues)
    )
    if layouts:
        weights = lowered.weights  # shapes suffice: values are packed once, by `schedule_program`
        lowered = lay_out_weights(replace(lowered, weights=DeferredWeights(lambda: weights, len(weights))), layouts)
    chosen = in_rows | summaries.chosen(
        _plain_kernels(lowered), repackable_parameters(lowered.program), machine, _least(in_rows.values())
    )
    program = _planned(lowered.program, chosen, _placed(chosen, machine), lowered.rows)
    kernels = {name: lowered.kernels[name] for name in _called(program, lowered.kernels)}
    return replace(lowered, program=program, kernels=kernels), _beside(chosen.values(), machine)


def figures_of_schedules(
    planned: Lowered, summaries: ScheduleSummaries, name: str, figure: Callable[[PrimFunc], Any]
) -> dict[str, Any]:
    """Compute `figure`, a JSON value, of each kernel scheduled by rule; keep it under `name`.

    `planned` is the result of `summarise_schedules`, the kernels are those of `schedule_program` without tuning.
    """
    machine = planned.machine
    found: dict[str, Any] = {}

    def finished(schedule: Schedule, rows: RowKernel | None = None) -> PrimFunc:
        return _finished(schedule.kernel, rows, _placed({"": schedule}, machine).get(""), machine)

    def of_rows(kernel_name: str, kernel: PrimFunc, repackable: frozenset[int], rows: RowKernel) -> ScheduleSummary:
        def made() -> Any:
            return figure(finished(row_schedule(kernel, repackable, machine, rows.continues), rows))

        found[kernel_name] = summaries.remembered(
            f"{name} {structural_key(kernel, rows, sorted(repackable), machine)}", made
        )
        return summaries.of_rows(kernel, repackable, machine, rows.continues)

    in_rows, _ = choose_rows(planned, of_rows)
    least, private = _least(in_rows.values()), repackable_parameters(planned.program)
    return found | summaries.figures(
        _plain_kernels(planned), private, machine, name, lambda each: figure(finished(each)), least
    )


def _plain_kernels(lowered: Lowered) -> dict[str, PrimFunc]:
    """Return the kernels that take whole tensors."""
    return {name: kernel for name, kernel in lowered.kernels.items() if name not in lowered.rows}


def _least(of_rows: Iterable[Schedule | ScheduleSummary]) -> int:
    """Return the bytes of workspace that kernels of rows let all kernels use."""
    return max((default_workspace(each.workspace, each.threads) for each in of_rows), default=0)


def _finished(kernel: PrimFunc, rows: RowKernel | None, placed: int | None, machine: Machine) -> PrimFunc:
    """Bind a scheduled kernel to its rows, and give it its workspace."""
    if rows is not None:
        kernel = rows.bind(kernel)
        if rows.groups and (machine.vmlava or not machine.compact):
            kernel = split_taps(kernel)
    return kernel if placed is None else add_workspace_parameter(kernel, placed, machine.register_bytes)


def _planned(
    program: Program, chosen: Mapping[str, Schedule | ScheduleSummary], placed: Mapping[str, int], rows: Collection[str]
) -> Program:
    """Set the sharing and workspaces of steps by their kernels, and plan the bodies of loops."""
    steps: list[Loop | Step] = []
    sizes: dict[str, tuple[int, ...]] = {name: (nbytes,) for name, nbytes in placed.items()}
    for step in program.steps:
        if isinstance(step, Loop):
            step, sizes[step.kernel] = plan_loop(replace(step, body=_planned(step.body, chosen, placed, rows)))
        elif step.kernel not in rows:
            found = chosen[step.kernel].sharing
            if found.results == len(step.writes):
                step = replace(step, in_place=found.in_place, copies=found.copies)
        steps.append(step)
    return add_workspaces(replace(program, steps=tuple(steps)), sizes)


def _called(program: Program, kernels: Iterable[str]) -> list[str]:
    """Return the kernels that a planned program still calls: bodies may need some of their copies no more."""
    called = {call.step.kernel for call in program.calls()}
    return [name for name in kernels if name in called]


def _placed(chosen: Mapping[str, Schedule | ScheduleSummary], machine: Machine) -> dict[str, int]:
    """Return the bytes of workspace in the arena by kernel: of one thread, since several have a part each."""
    if machine.threads > 1:
        return {}
    return {name: each.workspace for name, each in chosen.items() if each.workspace > machine.register_bytes}


def _beside(chosen: Collection[Schedule | ScheduleSummary], machine: Machine) -> int:
    """Return the bytes of workspace outside the arena."""
    if machine.threads == 1:
        return 0
    needed = (each.workspace for each in chosen if each.workspace > machine.register_bytes * each.threads)
    threads = machine.thread_bytes if any(each.threads > 1 for each in chosen) else 0
    return max(needed, default=0) + threads


def largest_default_workspace(lowered: Lowered) -> int:
    """Count the bytes of the largest workspace among the kernels as TVM made them."""
    return max((workspace_bytes(kernel) for kernel in lowered.kernels.values()), default=0)
