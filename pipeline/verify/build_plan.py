"""Build the library of one plan: replay its sequence, schedule its kernels, compare and measure the result."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..frontend.imported_model import ImportedModel
from ..memory.footprint import Measured
from ..memory.validation.checked_plan import checked_plan
from ..support.background import BackgroundResults
from ..support.interrupts import step_limit
from ..support.progress import Progress, silent
from ..targets import Target
from .build_and_run import build_and_run
from .settings import VerifySettings

if TYPE_CHECKING:
    from ..codegen.library import Library
    from ..kernels.lower.lower import Lowered
    from ..kernels.schedule.tuned import Tuning
    from ..memory import ArenaPlan
    from ..passes.program.layout import Layout
    from ..passes.sequence.sequence import Sequence


@dataclass(frozen=True)
class BuiltPlan:
    """Library of one plan that verified; `workspace` is in bytes.

    `before` has the same kernels in the order given, with their workspaces: nothing is shared, split or scheduled.
    """

    before: Lowered
    lowered: Lowered
    plan: ArenaPlan
    workspace: int
    measured: Measured
    library: Library


def build_plan(
    imported: ImportedModel,
    sequence: Sequence,
    schedules: Tuning,
    layout: Layout | None,
    target: Target,
    folder: Path,
    verify: VerifySettings,
    progress: Progress = silent,
    results: BackgroundResults | None = None,
) -> BuiltPlan:
    """Write the library of a sequence into `folder`, run it and compare it.

    `results` are those of the background tasks: the code of the baseline, and the cases of `verify`; None without any. Raises SequenceError,
    NumericError, ModelError, ToolchainError, OutputError; PlanError for a plan that breaks a rule.
    """
    from ..kernels.lower.schedule_program import summarise_schedules
    from ..kernels.schedule.summaries import ScheduleSummaries
    from ..passes.sequence.name_weights import name_weights
    from ..passes.sequence.replay import lower_by_sequence, schedule_sequence

    progress("lowering", 0, 0)
    with step_limit("Lowering", imported.name):
        before = lower_by_sequence(sequence, imported.graph, imported.onnx, imported.name, target.machine, schedules)
        named = name_weights(before.program, before.weights, imported.onnx, imported.given)
        before = replace(before, program=named)
        lowered, workspace = schedule_sequence(before, sequence, layout)
        plan = checked_plan(lowered.program, target, workspace)
        plain, _ = summarise_schedules(before, ScheduleSummaries())
    checked = verify if not sequence.lossy else replace(verify, tolerance=max(verify.tolerance, verify.max_error))
    measured, library = build_and_run(
        imported, lowered, plan, workspace, target, folder, checked, progress,
        wait_for_others=lambda: None if results is None else results.all(),
        background_cases=lambda: results.of(1) if results is not None and checked == verify else None,
    )  # fmt: skip
    return BuiltPlan(plain, lowered, plan, workspace, measured, library)
