"""Find cut points: sets of steps that every order has run at some moment.

At a cut point nothing else has run, so the bytes alive are fixed.

    a ──► b ──► d ──► e ──► g        cut points: {}, {a}, {a, b, c, d}, {a, b, c, d, e, f, g}
     └──► c ──┘  └──► f ──┘          segments:   a | b c d | e f g

Between two of them lies a segment: segments are ordered apart, and the peak is the largest of theirs.
"""

from __future__ import annotations

from functools import reduce
from operator import or_

from .step_graph import StepGraph, members


def ancestors(graph: StepGraph) -> list[int]:
    """Return the ancestors of each step as a bit set: every order runs them before it."""
    found: list[int] = []
    for before in graph.before:  # in the given order: each step comes after its dependencies
        found.append(reduce(or_, (found[step] for step in members(before)), before))
    return found


def cut_points(earlier: list[int]) -> list[int]:
    """Return the cut points as bit sets, from no step to all; `earlier` are the ancestors of each step.

    Sorted by their number of ancestors, the steps of a cut point come first, and are ancestors of all the others.
    """
    steps = sorted(range(len(earlier)), key=lambda step: earlier[step].bit_count())
    shared = rest = (1 << len(steps)) - 1
    points = [rest]
    for step in reversed(steps):
        shared &= earlier[step]
        rest ^= 1 << step
        if shared & rest == rest:
            points.append(rest)
    return points[::-1]
