"""Passes on a lowered program, and its kernels scheduled in between."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from ...errors import SequenceError
from ...kernels.lower.lower import Lowered
from ...kernels.lower.schedule_program import without_workspaces
from ...kernels.rewrite.channels_last import channels_last, digest_of
from ...kernels.rewrite.split_reductions import cut_sums
from ...kernels.rewrite.splittable import splits_of
from ...kernels.rewrite.stream_region import banded
from ..base import Level, Pass, ProgramPass, SplitPass
from ..program.cut_sums import CutSums
from ..program.layout import Layout


def arranged(
    lowered: Lowered,
    passes: Iterable[Pass],
    scheduled: Callable[[Lowered], tuple[Lowered, int]] = without_workspaces,
) -> tuple[Lowered, int]:
    """`lowered` after the passes on programs among `passes`, scheduled; and its largest workspace in bytes.

    `scheduled` may be `lowering.planned`, where kernels are not needed. Raises SequenceError where a split or a layout
    does not fit.
    """
    workspace: int | None = None
    for each in passes:
        if isinstance(each, SplitPass):
            lowered = banded(lowered, each.region(lowered.program, splits_of(lowered)))
        elif isinstance(each, CutSums):
            lowered = cut_sums(lowered)
        elif isinstance(each, Layout):
            if each.program and each.program != digest_of(lowered.program):
                raise SequenceError(
                    f"The pass '{each.spec[:80]}' is for the steps of another program.", "Run `passfit tune` again."
                )
            lowered = channels_last(lowered, each.numbers)
        elif isinstance(each, ProgramPass):
            if workspace is None and Level.LOWERED not in each.levels:
                lowered, workspace = scheduled(lowered)
            lowered = replace(lowered, program=each.apply(lowered.program))
    return (lowered, workspace) if workspace is not None else scheduled(lowered)
