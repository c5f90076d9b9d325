"""Search best-first for the order with the lowest peak, segment by segment.

The states are sets of finished steps. The bytes alive depend only on the set of finished steps (Ahn et al., Ordering
Chaos, MLSys 2020), and are submodular in it: more steps X add at most as much to it if others ran before. Suppose S ∪ X
has no more alive than S, and the steps X reach no peak above the present one. Then X can be taken out of any order that
goes on from S and be run right after S: no later step becomes dearer. The search then follows that one order only. It
looks for a single ready step like that (a forced move), and for one that is like that together with the moves it
forces.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import count, pairwise
from operator import or_

from .cut_points import ancestors, cut_points
from .step_graph import StepGraph, members


@dataclass(slots=True, eq=False)
class SearchState:
    """Steps `done` and steps `ready` to run next, as bit sets; the bytes alive now, and the peak.

    `ran` are the steps that led here from `parent`. A beam computes `ready` only for the states it keeps.
    """

    done: int
    ready: int
    alive: int
    peak: int
    parent: SearchState | None = None
    ran: tuple[int, ...] = ()

    def order(self) -> tuple[int, ...]:
        """Return the steps from the start to this state."""
        found: list[tuple[int, ...]] = []
        state: SearchState | None = self
        while state is not None:
            found.append(state.ran)
            state = state.parent
        return tuple(step for ran in reversed(found) for step in ran)


@dataclass(frozen=True)
class Segment:
    """Part of an order: the `steps` between the cut points `start` and `goal`, and their peak.

    `alive` bytes are alive at the start, `left` at the goal, not counting inputs that nobody reads.
    """

    start: int
    goal: int
    alive: int
    left: int
    steps: tuple[int, ...]
    peak: int


def best_first(graph: StepGraph, order: Sequence[int], work: int) -> tuple[tuple[int, ...], int]:
    """Return an order no worse than `order`, and a proved lower bound on the peak.

    The order is optimal if its peak meets the bound. The segment with the highest peak is searched for its best order;
    if that takes too long, for any better one, which forces more moves. All searches together look at `work` moves: a
    deterministic stand-in for time.
    """
    search = _Search(graph, work)
    segments = search.segments(order)
    least, share = graph.least, work // 4
    while search.work > 0 and any(segment.peak > least for segment in segments):
        place = max(range(len(segments)), key=lambda place: segments[place].peak)
        segment = segments[place]
        for level in (least, segment.peak - 1):
            steps, reached = search.ordered(segment, level, share)
            least = max(least, reached) if reached > level else least
            if steps is not None:
                segments[place] = search.segment(segment.start, segment.goal, segment.alive, steps)
            if steps is not None or least >= segment.peak:
                break
        else:
            share = search.work
    return tuple(step for segment in segments for step in segment.steps), least


class _Search:
    """State shared by the searches of all segments: the work left."""

    def __init__(self, graph: StepGraph, work: int):
        self.graph, self.work = graph, work

    def segments(self, order: Sequence[int]) -> list[Segment]:
        """Split `order` at the cut points."""
        points = cut_points(ancestors(self.graph))
        alive, first, found = self.graph.inputs - self.graph.unread, 0, []
        for start, goal in pairwise(points):
            last = goal.bit_count()
            found.append(self.segment(start, goal, alive, tuple(order[first:last])))
            alive, first = found[-1].left, last
        return found

    def segment(self, start: int, goal: int, alive: int, steps: tuple[int, ...]) -> Segment:
        """Return the segment between two cut points in the order of `steps`, from `alive` bytes."""
        done, left, peak = start, alive, 0
        for step in steps:
            added, growth = self.price(step, done)
            peak = max(peak, left + added)
            left += growth
            done |= 1 << step
        return Segment(start, goal, alive, left, steps, peak)

    def ordered(self, segment: Segment, level: int, share: int) -> tuple[tuple[int, ...] | None, int]:
        """Find an order of a segment with a lower peak, or None; also return the peak reached.

        Orders that stay at or below `level` are alike to it. If it reached more than that, no order is below the peak
        reached. It ends when it finds an order, when there is none, or after `share` moves.
        """
        end = max(0, self.work - share)
        steps = members(segment.goal & ~segment.start)
        ready = _union(1 << step for step in steps if not self.graph.before[step] & ~segment.start)
        first = SearchState(segment.start, ready, segment.alive, level)
        self.settle(first, segment.goal, ready, 0)
        # Of states with one peak, first the one with most steps done, then the one found first.
        number = count()
        heap = [(first.peak, 0, next(number), first)]
        peaks = {first.done: first.peak}
        while heap:
            peak, _, _, state = heapq.heappop(heap)
            if state.done == segment.goal:
                return state.order(), peak
            if self.work <= end:
                return None, peak
            if peak > peaks[state.done]:
                continue
            for child in self.children(state, segment):
                if child.peak < peaks.get(child.done, segment.peak):
                    peaks[child.done] = child.peak
                    heapq.heappush(heap, (child.peak, -child.done.bit_count(), next(number), child))
        return None, segment.peak

    def children(self, state: SearchState, segment: Segment) -> list[SearchState]:
        """Return the states one step later, with forced moves made, below the segment's peak.

        Returns only one if it has no more alive at no higher peak: nothing is gained by putting it off.
        """
        prices = [(step, *self.price(step, state.done)) for step in members(state.ready)]
        # These free as much as they take, but raise the peak: forced moves once it has been raised.
        waiting = _union(1 << step for step, _, growth in prices if growth <= 0)
        found = []
        for step, added, growth in prices:
            peak = max(state.peak, state.alive + added)
            if peak >= segment.peak:
                continue
            child = SearchState(state.done, state.ready, state.alive, peak, state)
            changed = self.run(child, segment.goal, step, growth)
            self.settle(child, segment.goal, changed | waiting & child.ready, waiting)
            if child.alive <= state.alive and peak <= state.peak:
                return [child]
            found.append(child)
        return found

    def settle(self, state: SearchState, goal: int, check: int, waiting: int) -> None:
        """Run all forced moves.

        `check` are ready steps that may be forced, `waiting` steps that raised the peak.
        """
        while check:
            bit = check & -check
            check ^= bit
            step = bit.bit_length() - 1
            added, growth = self.price(step, state.done)
            if growth > 0:
                continue
            if state.alive + added > state.peak:
                waiting |= bit
                continue
            check |= self.run(state, goal, step, growth)
            if growth < 0:
                check |= waiting & state.ready

    def run(self, state: SearchState, goal: int, step: int, growth: int) -> int:
        """Run a step; return the ready steps whose price may have changed."""
        state.done |= 1 << step
        state.ready = self.graph.ready_after(state.ready, step, state.done, goal)
        state.alive += growth
        state.ran += (step,)
        return state.ready & self.graph.sharers[step]

    def price(self, step: int, done: int) -> tuple[int, int]:
        """Return `StepGraph.price`, one move of the work."""
        self.work -= 1
        return self.graph.price(step, done)


def _union(sets: Iterable[int]) -> int:
    """Join bit sets."""
    return reduce(or_, sets, 0)
