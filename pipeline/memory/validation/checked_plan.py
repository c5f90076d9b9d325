"""Plan an arena and validate the plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...targets import Target

if TYPE_CHECKING:
    from ...program import Program
    from .. import ArenaPlan


def checked_plan(program: Program, target: Target) -> ArenaPlan:
    """Plan and validate the arena of a program for a target. Raises PlanError, always a bug."""
    from .. import plan_arena, validate_plan

    plan = plan_arena(program, target.alignment)
    validate_plan(program, plan, target.alignment)
    return plan
