"""Describe the planned body of a loop in a compiled program: its arrays, and their places in the kernel's workspace.

    workspace of loop    0 ┌────────────────┬──────┐
                           │ float32_values │ …    │       a value lies at its offset in the array of its dtype
                           └────────────────┴──────┘
"""

from __future__ import annotations

from dataclasses import dataclass

from ...program import Program
from .plan_arena import ArenaPlan


@dataclass(frozen=True)
class BodyArray:
    """Array of all values of one dtype, by a plan of their own.

    `offset` is in bytes of the kernel's workspace; None for an array on the stack, or of a kernel with threads.
    """

    name: str
    dtype: str
    plan: ArenaPlan
    offset: int | None = None


@dataclass(frozen=True)
class KeptBody:
    """Planned body of a loop that `kernel` runs `trips` times; its program has a step for each stage.

    An array of a loop inside is a buffer, of the array's name, of the body around it.
    """

    kernel: str
    trips: int
    alignment: int
    program: Program
    arrays: tuple[BodyArray, ...]
