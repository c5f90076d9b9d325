"""Schedule a kernel of rows: its tensors keep their axes, since their rows may lie in rings."""

from __future__ import annotations

from tvm.tirx import PrimFunc

from ...targets import Machine
from .candidates import RULE_WORKSPACE, Schedule, schedules
from .sum_in_place import schedule_in_place


def row_schedule(kernel: PrimFunc, repackable: frozenset[int], machine: Machine, continues: bool) -> Schedule:
    """Return the fastest schedule of small workspace; see `candidates.schedules` for the parameters.

    `continues`: the parameter before the result is the result so far, and lies in its place.
    """
    found = schedules(kernel, repackable, machine, True)
    return (
        schedule_in_place(found, len(kernel.params) - 2) if continues else found.within(RULE_WORKSPACE, RULE_WORKSPACE)
    )


def default_workspace(workspace: int, threads: int) -> int:
    """Return the bytes that a kernel of rows lets all kernels of a program use."""
    return max(workspace, RULE_WORKSPACE * threads)
