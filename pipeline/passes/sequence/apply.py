"""Apply program passes to a lowered program, and schedule its kernels between them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ...kernels.lower.lower import Lowered
from ...kernels.lower.schedule_program import schedule_program
from ...kernels.rewrite.integers_last import integers_last
from ..base import Level, LoweredPass, Pass


def apply_program_passes(
    lowered: Lowered,
    passes: Iterable[Pass],
    scheduled: Callable[[Lowered], tuple[Lowered, int]] = schedule_program,
) -> tuple[Lowered, int]:
    """Apply the program passes of `passes` and schedule the kernels.

    Returns the program and the largest workspace in bytes; skips module passes. `scheduled` may plan schedules only,
    see `schedule_program.summarise_schedules`. Raises SequenceError for a split or a layout of another program.
    """
    workspace: int | None = None
    for each in passes:
        if not isinstance(each, LoweredPass):
            continue
        if workspace is None and Level.LOWERED not in each.levels:
            lowered, workspace = _in_best_layout(lowered, scheduled)
        lowered = each.apply(lowered)
    return (lowered, workspace) if workspace is not None else _in_best_layout(lowered, scheduled)


def _in_best_layout(lowered: Lowered, scheduled: Callable[[Lowered], tuple[Lowered, int]]) -> tuple[Lowered, int]:
    """Schedule the kernels with integers channels last, if that costs no memory."""
    plain, workspace = scheduled(lowered)
    last = integers_last(lowered, range(len(lowered.program.steps)))
    if last is lowered:
        return plain, workspace
    moved, needed = scheduled(last)
    shared = all(
        set(one.in_place) <= set(other.in_place) and set(one.copies) <= set(other.copies)
        for one, other in zip(plain.program.steps, moved.program.steps, strict=True)
    )
    return (moved, needed) if shared and needed <= workspace else (plain, workspace)
