"""Planned bodies of loops: one inside the other, with arrays in the workspace of one kernel."""

from __future__ import annotations

from passfit.memory import ALIGNMENT, SavedPlan, plan_arena
from passfit.memory.placement.kept_body import BodyArray, KeptBody
from passfit.memory.placement.plan_body import plan_body
from passfit.program import Buffer, Port, Program, Step, Tensor
from passfit.program.workspaces import with_workspaces

from ..strategies import chain


def _body(*values: tuple[str, int]) -> Program:
    """Values that are each made from the one before, the last one for a state."""
    tensors = (*(Tensor((nbytes,), "uint8", buffer=number) for number, (_, nbytes) in enumerate(values)), Tensor((0,), "uint8", buffer=len(values)))
    steps = tuple(Step(name, (number - 1,) if number else (), (number,)) for number, (name, _) in enumerate(values))
    state = Step("state", (len(values) - 1,), (len(values),))
    return Program(
        "body", (*steps, state), tensors, (*(Buffer(*each) for each in values), Buffer("state", 0)), (), (), (Port("state", len(values)),)
    )


def with_loop() -> SavedPlan:
    """A chain whose kernel k1 is a loop of 40 iterations, with one of 5 inside."""
    inner = plan_body(_body(("a", 128), ("b", 64), ("c", 256)))
    outer = plan_body(_body(("wide", 1024), ("uint8_values_1", inner.nbytes), ("narrow", 64)))
    program = with_workspaces(chain(640, 640, 640), {"k1": outer.nbytes + 128})
    place = 128 + outer.plans["uint8"].offsets[1]
    bodies = (
        KeptBody("k1", 40, ALIGNMENT, outer.program, (BodyArray("uint8_values", "uint8", outer.plans["uint8"], 128),)),
        KeptBody("k1", 5, ALIGNMENT, inner.program, (BodyArray("uint8_values_1", "uint8", inner.plans["uint8"], place),)),
    )
    return SavedPlan(program, plan_arena(program), ALIGNMENT, bodies)
