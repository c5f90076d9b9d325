"""Plan an arena and validate the plan."""

from __future__ import annotations

from ...program import Program
from ...targets import Target
from ..placement.plan_arena import ArenaPlan, plan_arena
from .validate_plan import validate_plan


def checked_plan(program: Program, target: Target) -> ArenaPlan:
    """Plan and validate the arena of a program for a target. Raises PlanError, always a bug."""
    plan = plan_arena(program, target.alignment)
    validate_plan(program, plan, target.alignment)
    return plan
