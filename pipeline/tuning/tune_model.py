"""Tune a model: layouts first, then kernels one by one; compare whole libraries after each."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from ..codegen.build_library import build_library
from ..errors import ConfigError
from ..frontend.imported_model import ImportedModel
from ..memory.placement.account import footprint_of
from ..memory.validation.checked_plan import checked_plan
from ..support.progress import Progress
from ..support.temporary_folder import scratch_folder
from ..targets import Target, how_to_run
from .settings import TuneSettings

if TYPE_CHECKING:
    from ..kernels.lower.lower import Lowered
    from ..kernels.schedule.tuned import Tuning
    from ..passes.program.layout import Layout
    from ..passes.sequence.sequence import Sequence
    from .database import Database, LayoutResult, LibraryComparison
    from .measure.choose_harness import HarnessFactory
    from .tune_kernels import Countdown

#: share of the time for layouts, which determine the kernels to tune
_FOR_LAYOUT = 0.4
#: least gain of a timed library, as a fraction: less is noise
_NOISE = 0.02
#: largest difference between outputs of two libraries, relative to their range
_TOLERANCE = 1e-4


def check_measurable(target: Target) -> None:
    """Raise ConfigError if no kernel of the target can be measured here."""
    if why := why_unmeasured(target):
        raise ConfigError(f"Kernels for {target.name} cannot be measured {why}.", "Set seconds to 0.")


def why_unmeasured(target: Target) -> str:
    """Return why kernels of the target cannot be measured; empty if this machine, or its emulator, runs one by one."""
    if target.bare:
        return "one by one: it has no operating system"
    runner = how_to_run(target)
    return f"here: {runner.how}" if runner.command is None else ""


def find_tuning(
    imported: ImportedModel, sequence: Sequence, target: Target, settings: TuneSettings, progress: Progress
) -> Database:
    """Tune layouts and kernels within the seconds of `settings`, plus the comparisons of libraries.

    Kernels are timed if this machine runs the target natively, else counted under its emulator. Raises the errors of
    building and running a library.
    """
    from ..kernels.schedule.tuned import Tuning
    from ..passes.sequence.replay import replay
    from .database import Database, device_of
    from .measure.choose_harness import HarnessFactory
    from .recorder import ScheduleRecorder
    from .tune_kernels import Countdown, finds_cold_caches, tune_kernels, within_workspace

    def lowered(tuning: Tuning, layout: Layout | None = None) -> tuple[Lowered, int]:
        return replay(sequence, imported.graph, imported.onnx, imported.name, target.machine, tuning, layout)

    progress("lowering", 0, 0)
    runner, plain = how_to_run(target), lowered(Tuning())
    clock = Countdown(settings.seconds, lambda over: progress("tuning", int(over), math.ceil(settings.seconds)))
    cold = runner.native and finds_cold_caches(plain[0].program.weight_bytes)
    how, unit = f"native, caches {'cold' if cold else 'warm'}", "ns"
    if not runner.native:
        how, unit = f"{runner.how}, executed instructions", "instructions"
    laid = find_layout(imported, sequence, target, HarnessFactory(target, settings.seed, cold), clock, plain, progress)
    found = Database(target.name, device_of(target), how, unit, settings.seed, layout=laid)

    recorder, layout = ScheduleRecorder(), found.layout_pass
    by_rules = lowered(recorder, layout)
    kernels = tune_kernels(recorder, target, clock, settings.seed, settings.trials, cold)
    found = replace(found, kernels=tuple(kernels))
    tuned = lowered(found.adopted.schedules, layout)
    if tuned[1] > by_rules[1]:  # windows in one kernel share workspace, so only the whole program shows its size
        found = replace(found, kernels=tuple(within_workspace(kernels, recorder)))
        tuned = lowered(found.adopted.schedules, layout)
    if not found.choices:
        return found
    progress("comparing", 0, 0)
    return replace(found, whole=_whole(imported, [by_rules, tuned], target))


def find_layout(
    imported: ImportedModel,
    sequence: Sequence,
    target: Target,
    harnesses: HarnessFactory,
    clock: Countdown,
    plain: tuple[Lowered, int],
    progress: Progress,
) -> LayoutResult:
    """Find the best layouts in a share of the time; `plain` is the program with planes only."""
    from ..passes.sequence.apply import apply_program_passes
    from ..passes.sequence.replay import lower_by_sequence, schedule_sequence
    from .choose_layout import choose_layout
    from .database import LayoutResult

    lowered = lower_by_sequence(sequence, imported.graph, imported.onnx, imported.name, target.machine)
    unscheduled, _ = apply_program_passes(lowered, sequence.around_layout()[0], lambda each: (each, 0))
    choice = choose_layout(unscheduled, harnesses, clock.part(_FOR_LAYOUT))
    found = LayoutResult("", round(choice.before), round(choice.after), choice.tried, choice.proved)
    if choice.layout is None:
        return replace(found, note="no measured kernel is faster with channels last")
    found = replace(found, spec=choice.layout.spec)
    laid = schedule_sequence(lowered, sequence, choice.layout)
    if _ram(laid, target) > _ram(plain, target):
        return replace(found, note="the library would need more ram")
    progress("comparing", 0, 0)
    whole = _whole(imported, [plain, laid], target)
    if whole is None:
        return replace(found, note="the libraries execute too many instructions to count")
    why = "has other outputs" if _faster(whole.unit, whole.before, whole.after) else "is hardly faster"
    return replace(found, whole=whole, taken=whole.taken, note="" if whole.taken else f"the whole library {why}")


def _ram(lowered: tuple[Lowered, int], target: Target) -> int:
    program, workspace = lowered
    return footprint_of(program.program, checked_plan(program.program, target), workspace, 0, target).ram


def _whole(imported: ImportedModel, lowered: list[tuple[Lowered, int]], target: Target) -> LibraryComparison | None:
    """Compare two libraries; take the second if it is clearly faster and computes the same.

    None if there are too many instructions to count.
    """
    from ..verify.inputs import make_input
    from ..verify.measure.side_by_side import compare_speed
    from ..verify.runner import link
    from .database import LibraryComparison
    from .measure.operands import close

    with scratch_folder() as scratch:
        linked = []
        for number, (program, workspace) in enumerate(lowered):
            folder = scratch / str(number)
            folder.mkdir()
            library = build_library(
                imported.name, program, checked_plan(program.program, target), workspace, target, folder
            )
            linked.append(link(library, program.program, target, folder))
        inputs = make_input(imported.drawn_for, 0, 0)
        found = compare_speed(linked, inputs)
        if found is None:
            return None
        one, other = (each.run([inputs])[1][0] for each in linked)
    unit, (before, after) = found
    same = all(close(other[name], one[name], _TOLERANCE) for name in one)
    return LibraryComparison(unit, before, after, _faster(unit, before, after) and same)


def _faster(unit: str, before: float, after: float) -> bool:
    return after < (before if unit == "instructions" else before * (1 - _NOISE))
