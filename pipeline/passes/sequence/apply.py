"""Apply program passes to a lowered program, and schedule its kernels between them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ...kernels.lower.lower import Lowered
from ...kernels.lower.schedule_program import schedule_program
from ...kernels.rewrite.integers_last import integers_last
from ...memory import bound, shared_floor
from ...program import Program
from ..base import Level, LoweredPass, Pass, ProgramPass


def apply_program_passes(
    lowered: Lowered,
    passes: Iterable[Pass],
    scheduled: Callable[[Lowered], tuple[Lowered, int]] = schedule_program,
) -> tuple[Lowered, int]:
    """Apply the program passes of `passes` and schedule the kernels.

    Returns the program and the bytes of workspace outside the arena; skips module passes. `scheduled` may plan schedules only,
    see `schedule_program.summarise_schedules`. Raises SequenceError for a split or a layout of another program.
    """
    workspace: int | None = None
    for each in passes:
        if not isinstance(each, LoweredPass):
            continue
        if workspace is None and Level.LOWERED not in each.levels:
            lowered, workspace = _choose_layout(lowered, scheduled)
        lowered = each.apply(lowered)
    return (lowered, workspace) if workspace is not None else _choose_layout(lowered, scheduled)


def rearranged(program: Program, passes: Iterable[Pass]) -> Program:
    """Apply the program passes of `passes` to a program alone; skip passes of other levels."""
    for each in passes:
        if isinstance(each, ProgramPass):
            program = each.rearrange(program)
    return program


def _choose_layout(lowered: Lowered, scheduled: Callable[[Lowered], tuple[Lowered, int]]) -> tuple[Lowered, int]:
    """Schedule the kernels with integers channels last, if that costs no memory: results that would share less keep theirs."""
    plain, workspace = scheduled(lowered)
    kept: set[int] = set()
    while True:
        last = integers_last(lowered, range(len(lowered.program.steps)), kept)
        if last is lowered:
            return plain, workspace
        moved, needed = scheduled(last)
        less = {
            tensor
            for one, other in zip(plain.program.steps, moved.program.steps, strict=True)
            for each in {*one.in_place, *one.copies} - {*other.in_place, *other.copies}
            for tensor in (one.reads[each.read], one.writes[each.write])
        }
        if not less:
            return (
                (plain, workspace)
                if needed > workspace or _needs_more(moved.program, plain.program)
                else (moved, needed)
            )
        if less <= kept:
            return plain, workspace
        kept |= less


def _needs_more(one: Program, other: Program) -> bool:
    """Tell whether a program takes more memory than another of the same steps: with nothing shared, or with all."""
    return bound(one) > bound(other) or shared_floor(one) > shared_floor(other)
