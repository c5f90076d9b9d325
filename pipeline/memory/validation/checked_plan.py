"""Plan an arena and validate the plan."""

from __future__ import annotations

from ...program import Program
from ...targets import Target
from ..placement.plan_arena import ArenaPlan, plan_arena
from ..placement.plan_banks import plan_on
from .validate_plan import validate_plan


def checked_plan(program: Program, target: Target, workspace: int = 0) -> ArenaPlan:
    """Plan and validate the arena of a program in the memories of a target, along with `workspace` bytes. Raises PlanError, always a bug."""
    plan = plan_arena(program, target.alignment)
    if target.bare:
        plan = plan_on(program, plan, target, workspace)
    validate_plan(program, plan, target.alignment)
    return plan
