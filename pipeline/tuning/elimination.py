"""The cheapest labels for the vertices of a graph, each cost hanging on a few of them: dynamic programming.

Bucket elimination (Dechter 1999, "Bucket elimination: a unifying framework for reasoning"), the vertex with the fewest
neighbours first: on a chain it is the dynamic programming by which Liu et al. (ATC 2019, "Optimizing CNN Model
Inference on CPUs") choose layouts. No TVM.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

#: labels of a table, beyond which the vertex that makes it is left as it is
WIDTH = 16


@dataclass(frozen=True, eq=False)
class Costs:
    """What the labels of `vertices`, all different, cost together: an array with an axis for each of them, infinite
    where they cannot be."""

    vertices: tuple[int, ...]
    table: np.ndarray


@dataclass(frozen=True)
class Labelling:
    """A label for each vertex, and what they cost; `proved` where no others cost less."""

    labels: tuple[int, ...]
    cost: float
    proved: bool


def cheapest(count: int, costs: Iterable[Costs], width: int = WIDTH) -> Labelling:
    """Labels for the vertices 0 … `count` - 1. All of them being 0 has to be possible, and the result costs no more.

    A vertex whose elimination needs a table of more than `width` vertices gets label 0: the result is then the best of
    those in which it has.
    """
    given = list(costs)
    left, waiting, proved = list(given), set(range(count)), True
    choices: list[tuple[int, Costs]] = []
    while waiting:
        around = {each: _neighbours(each, left) for each in waiting}
        vertex = min(waiting, key=lambda each: (len(around[each]), each))
        waiting.remove(vertex)
        involved = [each for each in left if vertex in each.vertices]
        left = [each for each in left if vertex not in each.vertices]
        if len(around[vertex]) >= width:
            proved = False
            left += [_given(each, vertex) for each in involved]
            continue
        joined = _sum(involved, (vertex, *sorted(around[vertex])))
        choices.append((vertex, joined))
        left.append(Costs(joined.vertices[1:], joined.table.min(axis=0)))
    labels = [0] * count
    for vertex, joined in reversed(choices):
        labels[vertex] = int(np.argmin(joined.table[(slice(None), *(labels[each] for each in joined.vertices[1:]))]))
    return Labelling(tuple(labels), total(given, labels), proved)


def total(costs: Iterable[Costs], labels: Sequence[int]) -> float:
    """What these labels cost."""
    return float(sum(each.table[tuple(labels[vertex] for vertex in each.vertices)] for each in costs))


def _neighbours(vertex: int, costs: Iterable[Costs]) -> set[int]:
    return {other for each in costs if vertex in each.vertices for other in each.vertices} - {vertex}


def _given(costs: Costs, vertex: int) -> Costs:
    """The costs where the vertex has label 0."""
    axis = costs.vertices.index(vertex)
    return Costs(tuple(each for each in costs.vertices if each != vertex), costs.table.take(0, axis=axis))


def _sum(costs: Iterable[Costs], vertices: tuple[int, ...]) -> Costs:
    """All of them in one table; a vertex that is in none has one label there."""
    found = np.zeros((1,) * len(vertices))
    for each in costs:
        order = sorted(range(len(each.vertices)), key=lambda axis: vertices.index(each.vertices[axis]))
        shape = [1] * len(vertices)
        for axis in order:
            shape[vertices.index(each.vertices[axis])] = each.table.shape[axis]
        found = found + each.table.transpose(order).reshape(shape)
    return Costs(vertices, found)
