"""How one pass bears on another: what a pass does after another one, against what it does alone. No TVM here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

#: what a pass can do to a later one; "" is nothing
RELATIONS = ("enables", "disables", "strengthens", "weakens")


@dataclass(frozen=True)
class Effect:
    """What a pass did to a graph: whether it changed it, and by how much each field of the footprint moved.

    A pass that fails changes nothing; `failed` says why.
    """

    changed: bool
    delta: Mapping[str, int]
    failed: str = ""


def relation(alone: Effect, after: Effect) -> str:
    """One of RELATIONS, or "": what the pass before did to this one, whose effects `alone` and `after` it are given.

    A pass is enabled where it changes nothing alone; it is strengthened where it leaves less ram than alone (with
    equal ram: a smaller sum of tensors), both counted as changes.
    """
    if alone.changed != after.changed:
        return "enables" if after.changed else "disables"
    ram, total = implicit(alone, after)
    if not after.changed or (ram, total) == (0, 0):
        return ""
    return "strengthens" if (ram, total) < (0, 0) else "weakens"


def implicit(alone: Effect, after: Effect) -> tuple[int, int]:
    """How many bytes of ram, and of the sum of tensors, a pass adds more than alone; negative is better."""
    return after.delta["ram"] - alone.delta["ram"], after.delta["sum"] - alone.delta["sum"]
