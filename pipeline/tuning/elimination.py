"""Find the cheapest labelling of a graph's vertices by bucket elimination; each cost depends on few vertices.

Dechter 1999, "Bucket elimination: a unifying framework for reasoning"; the vertex with the fewest neighbours goes first.
On a chain it is the dynamic programming of Liu et al. for layouts (ATC 2019, "Optimizing CNN Model Inference on CPUs").
No TVM.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

#: most vertices of a table; a vertex whose elimination needs more keeps label 0
WIDTH = 16


@dataclass(frozen=True, eq=False)
class JointCosts:
    """Joint costs of the labels of `vertices`, all distinct.

    `table` has one axis per vertex; impossible labellings cost infinity.
    """

    vertices: tuple[int, ...]
    table: np.ndarray


@dataclass(frozen=True)
class Labelling:
    """Label of each vertex, and their cost; `proved` if no labelling costs less."""

    labels: tuple[int, ...]
    cost: float
    proved: bool


def cheapest(count: int, costs: Iterable[JointCosts], width: int = WIDTH) -> Labelling:
    """Find the cheapest labels of the vertices 0 … `count` - 1.

    Label 0 everywhere must be possible; the result costs no more. A vertex whose elimination needs a table of more than
    `width` vertices is fixed to label 0: the result is then the best labelling with it, and not `proved`.
    """
    given = list(costs)
    left, waiting, proved = list(given), set(range(count)), True
    choices: list[tuple[int, JointCosts]] = []
    while waiting:
        around = {each: _neighbours(each, left) for each in waiting}
        vertex = min(waiting, key=lambda each: (len(around[each]), each))
        waiting.remove(vertex)
        involved = [each for each in left if vertex in each.vertices]
        left = [each for each in left if vertex not in each.vertices]
        if len(around[vertex]) >= width:
            proved = False
            left += [_restrict(each, vertex) for each in involved]
            continue
        joined = _sum(involved, (vertex, *sorted(around[vertex])))
        choices.append((vertex, joined))
        left.append(JointCosts(joined.vertices[1:], joined.table.min(axis=0)))
    labels = [0] * count
    for vertex, joined in reversed(choices):
        labels[vertex] = int(np.argmin(joined.table[(slice(None), *(labels[each] for each in joined.vertices[1:]))]))
    return Labelling(tuple(labels), total(given, labels), proved)


def total(costs: Iterable[JointCosts], labels: Sequence[int]) -> float:
    """Sum up the costs of a labelling."""
    return float(sum(each.table[tuple(labels[vertex] for vertex in each.vertices)] for each in costs))


def _neighbours(vertex: int, costs: Iterable[JointCosts]) -> set[int]:
    return {other for each in costs if vertex in each.vertices for other in each.vertices} - {vertex}


def _restrict(costs: JointCosts, vertex: int) -> JointCosts:
    """Restrict costs to label 0 of a vertex."""
    axis = costs.vertices.index(vertex)
    return JointCosts(tuple(each for each in costs.vertices if each != vertex), costs.table.take(0, axis=axis))


def _sum(costs: Iterable[JointCosts], vertices: tuple[int, ...]) -> JointCosts:
    """Add costs into one table over `vertices`; vertices without costs get an axis of length 1."""
    found = np.zeros((1,) * len(vertices))
    for each in costs:
        order = sorted(range(len(each.vertices)), key=lambda axis: vertices.index(each.vertices[axis]))
        shape = [1] * len(vertices)
        for axis in order:
            shape[vertices.index(each.vertices[axis])] = each.table.shape[axis]
        found = found + each.table.transpose(order).reshape(shape)
    return JointCosts(vertices, found)
