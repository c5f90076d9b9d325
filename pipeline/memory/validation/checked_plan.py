"""Plan an arena and validate the plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...targets import Target

if TYPE_CHECKING:
    from ...program import Program
    from .. import ArenaPlan


def checked_plan(program: Program, target: Target) -> ArenaPlan:
    """Plan the arena of a program for a target, and validate it. Raises PlanError, which would be a bug."""
    from .. import plan_arena, validate_plan

    plan = plan_arena(program, target.alignment)
    validate_plan(program, plan, target.alignment)
    return plan
