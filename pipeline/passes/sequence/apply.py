"""Apply program passes to a lowered program, and schedule its kernels between them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ...kernels.lower.lower import Lowered
from ...kernels.lower.schedule_program import schedule_program
from ..base import Level, LoweredPass, Pass


def apply_program_passes(
    lowered: Lowered,
    passes: Iterable[Pass],
    scheduled: Callable[[Lowered], tuple[Lowered, int]] = schedule_program,
) -> tuple[Lowered, int]:
    """Apply the passes on lowered programs among `passes`, schedule the kernels, return both with the workspace.

    The largest workspace is in bytes. `scheduled` may plan schedules only, see `schedule_program.summarise_schedules`.
    Raises SequenceError for a split or a layout of another program.
    """
    workspace: int | None = None
    for each in passes:
        if not isinstance(each, LoweredPass):
            continue
        if workspace is None and Level.LOWERED not in each.levels:
            lowered, workspace = scheduled(lowered)
        lowered = each.apply(lowered)
    return (lowered, workspace) if workspace is not None else scheduled(lowered)
