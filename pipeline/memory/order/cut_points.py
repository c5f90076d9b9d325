"""Cut points: sets of steps that every order has run at some moment, and nothing else. What is alive there is fixed.

    a ──► b ──► d ──► e ──► g        cut points: {}, {a}, {a, b, c, d}, {a, b, c, d, e, f, g}
     └──► c ──┘  └──► f ──┘          segments:   a | b c d | e f g

Between two of them lies a segment: segments are ordered apart, and the peak is the largest of theirs.
"""

from __future__ import annotations

from .step_graph import StepGraph


def ancestors(graph: StepGraph) -> list[int]:
    """For each step the steps that every order runs before it, as a bit set."""
    found: list[int] = []
    for before in graph.before:  # in the given order, in which each step comes after what it needs
        everything, left = before, before
        while left:
            bit = left & -left
            left ^= bit
            everything |= found[bit.bit_length() - 1]
        found.append(everything)
    return found


def cut_points(earlier: list[int]) -> list[int]:
    """The cut points as bit sets, growing from no step to all; `earlier` are the ancestors of each step.

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
