"""Find the order of a program's steps with the least memory. All sizes are bytes.

The peak of an order is its bound: the largest sum of aligned buffers alive at one step.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ...program import Program
from ..liveness import ALIGNMENT
from .beam import beam_search
from .step_graph import StepGraph, check_order, members, step_graph

#: names of the orders that need no search
CHEAP_ORDERS = ("given", "depth-first", "on-demand", "greedy")
#: widths of the beams tried one after the other, in states per step: for a quick order, and for the best
QUICK, WIDTHS = (32,), (32, 256, 2048)


@dataclass(frozen=True)
class FoundOrder:
    """Order of the steps, its peak, and whether no order has a lower one.

    The order is a permutation for `Program.reordered`.
    """

    order: tuple[int, ...]
    peak: int
    optimal: bool


def orders(program: Program) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Return the CHEAP_ORDERS of a program, by name."""
    return orders_of(step_graph(program))


def orders_of(graph: StepGraph) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Return the CHEAP_ORDERS of a step graph, by name."""
    made = (tuple(range(len(graph.before))), depth_first(graph), demand_order(graph), greedy(graph))
    return zip(CHEAP_ORDERS, made, strict=True)


def best_order(program: Program, alignment: int = ALIGNMENT) -> FoundOrder:
    """Return the order of `beam_order` by the widest beams."""
    return beam_order(program, WIDTHS, alignment)


def beam_order(program: Program, widths: Sequence[int] = QUICK, alignment: int = ALIGNMENT) -> FoundOrder:
    """Return the best cheap order, improved by beams of `widths` states until it is known to be the best.

    It is never worse than the given order. Of orders with the same peak the first of `orders` is kept, so a program
    that is good already stays as it is.
    """
    graph = step_graph(program, alignment)
    best = FoundOrder((), 0, False)
    for name, order in orders_of(graph):
        peak = max(graph.alive(order))
        if name == "given" or peak < best.peak:
            best = FoundOrder(order, peak, peak == graph.least)
        if best.optimal:
            return best
    for width in widths:
        found, exhausted = beam_search(graph, best.peak, width)
        order = best.order if found is None else found
        peak = max(graph.alive(order))
        best = FoundOrder(order, peak, exhausted or peak == graph.least)
        if best.optimal:
            break
    check_order(program, best.order)
    return best


def depth_first(graph: StepGraph) -> tuple[int, ...]:
    """Order the steps in reverse post-order: a branch runs to its end before the next begins.

    The order TensorFlow Lite converters and HMCOS (DAC 2022) start from. Of several branches the first is run first.
    """
    seen = [False] * len(graph.before)
    finished: list[int] = []
    for root in reversed(range(len(graph.before))):
        if not graph.before[root]:
            _post_order(root, [after[::-1] for after in graph.after], seen, finished)
    return tuple(finished[::-1])


def demand_order(graph: StepGraph) -> tuple[int, ...]:
    """Order the steps in post-order from the last: nothing is computed before a reader asks."""
    needs: list[list[int]] = [[] for _ in graph.before]
    for step, after in enumerate(graph.after):
        for later in after:
            needs[later].append(step)
    seen = [False] * len(needs)
    finished: list[int] = []
    for root, after in enumerate(graph.after):
        if not after:
            _post_order(root, needs, seen, finished)
    return tuple(finished)


def _post_order(root: int, edges: list, seen: list[bool], finished: list[int]) -> None:
    """Append the nodes reachable from `root` to `finished`, each after all its edges lead to."""
    if seen[root]:
        return
    seen[root] = True
    stack = [(root, iter(edges[root]))]
    while stack:
        step, left = stack[-1]
        for following in left:
            if not seen[following]:
                seen[following] = True
                stack.append((following, iter(edges[following])))
                break
        else:
            stack.pop()
            finished.append(step)


def greedy(graph: StepGraph) -> tuple[int, ...]:
    """Order the steps by least memory alive after each; ties go to the step that allocates less.

    A step's price changes only when a step runs that shares a buffer with it. So prices are kept in a heap, and
    outdated ones stay until they come up.
    """
    ready, done, order = graph.ready, 0, list[int]()
    heap = [(*graph.price(step, 0)[::-1], step) for step in members(ready)]
    heapq.heapify(heap)
    while heap:
        growth, added, step = heapq.heappop(heap)
        if not ready >> step & 1 or (added, growth) != graph.price(step, done):
            continue
        order.append(step)
        done |= 1 << step
        before, ready = ready, graph.ready_after(ready, step, done)
        # The first step alone gets rid of the inputs nobody reads.
        changed = ready if len(order) == 1 and graph.unread else ready & (graph.sharers[step] | ~before)
        for other in members(changed):
            heapq.heappush(heap, (*graph.price(other, done)[::-1], other))
    return tuple(order)
