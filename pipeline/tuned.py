"""A tuning of a model: of its kernels one by one, and then of the library they make, beside the one by the rules."""

from __future__ import annotations

import math
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from .building import build_library, plan_of
from .imported import ImportedModel
from .settings import Progress, TuneSettings
from .targets import Target, how_to_run

if TYPE_CHECKING:
    from .kernels.lowering import Lowered
    from .passes.sequence import Sequence
    from .tuning.database import Database, Whole


def find_tuning(
    imported: ImportedModel, sequence: Sequence, target: Target, settings: TuneSettings, progress: Progress
) -> Database:
    """What is found within the seconds of `settings`; comparing the libraries comes on top. Timed where this machine runs
    the target natively, else counted under its emulator. Raises what building and running do."""
    from .kernels.tuning import Tuning
    from .search.replay import replay
    from .tuning.census import Census
    from .tuning.database import Database, device_of
    from .tuning.tune import Clock, finds_cold_caches, tune_kernels, within

    def lowered(tuning: Tuning) -> tuple[Lowered, int]:
        return replay(sequence, imported.graph, imported.onnx, imported.name, target.machine, tuning)

    progress("lowering", 0, 0)
    census, runner = Census(), how_to_run(target)
    by_rules = lowered(census)
    clock = Clock(settings.seconds, lambda over: progress("tuning", int(over), math.ceil(settings.seconds)))
    cold = runner.native and finds_cold_caches(by_rules[0].program.weight_bytes)
    kernels = tune_kernels(census, target, clock, settings.seed, settings.trials, cold)
    how, unit = f"native, caches {'cold' if cold else 'warm'}", "ns"
    if not runner.native:
        how, unit = f"{runner.how}, executed instructions", "instructions"
    found = Database(target.name, device_of(target), how, unit, settings.seed, kernels=tuple(kernels))
    tuned = lowered(Tuning(found.choices))
    if tuned[1] > by_rules[1]:  # windows in one kernel share their workspaces, in ways that only the whole shows
        found = replace(found, kernels=tuple(within(kernels, census)))
        tuned = lowered(Tuning(found.choices))
    if not found.choices:
        return found
    progress("comparing", 0, 0)
    return replace(found, whole=_whole(imported, [by_rules, tuned], target))


def _whole(imported: ImportedModel, lowered: list[tuple[Lowered, int]], target: Target) -> Whole | None:
    """What a run of the libraries takes, by the rules and tuned; None where there are too many instructions to count."""
    from .tuning.database import Whole
    from .verify.inputs import make_input
    from .verify.pace import pace
    from .verify.runner import link

    with tempfile.TemporaryDirectory(prefix="passfit-") as scratch:
        linked = []
        for number, (program, workspace) in enumerate(lowered):
            folder = Path(scratch) / str(number)
            folder.mkdir()
            library = build_library(imported.name, program, plan_of(program, target), workspace, target, folder)
            linked.append(link(library, program.program, target, folder))
        found = pace(linked, make_input(imported.onnx, 0, 0))
    if found is None:
        return None
    unit, (before, after) = found
    return Whole(unit, before, after, after < before)
