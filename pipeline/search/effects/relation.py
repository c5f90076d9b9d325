"""Classify the implicit effect of one pass on another. No TVM here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

#: implicit effects on a later pass; "" is none
RELATIONS = ("enables", "disables", "strengthens", "weakens")


@dataclass(frozen=True)
class Effect:
    """Effect of a pass on a graph.

    `delta` is the change of each footprint field. A pass that fails changes nothing; `failed` is the reason.
    """

    changed: bool
    delta: Mapping[str, int]
    failed: str = ""


def relation(alone: Effect, after: Effect) -> str:
    """Classify the effect of an earlier pass on this one: one of RELATIONS, or "".

    `alone` is the effect of this pass alone, `after` its effect after the earlier pass. A pass is enabled if it changes
    nothing alone. It is strengthened if it saves more ram than alone (with equal ram: more of the sum of tensors).
    """
    if alone.changed != after.changed:
        return "enables" if after.changed else "disables"
    ram, total = implicit(alone, after)
    if not after.changed or (ram, total) == (0, 0):
        return ""
    return "strengthens" if (ram, total) < (0, 0) else "weakens"


def implicit(alone: Effect, after: Effect) -> tuple[int, int]:
    """Return the implicit change of ram and of the sum of tensors in bytes; negative is better."""
    return after.delta["ram"] - alone.delta["ram"], after.delta["sum"] - alone.delta["sum"]
