"""Beam search over sets of finished steps, for an order with a lower peak.

The bytes alive depend only on the set of finished steps, so of two orders that reach one set only the lower peak counts
(Ahn et al., Ordering Chaos, MLSys 2020). A step that frees as much as it takes, without a new peak, is run at once:
no order gains by putting it off.
"""

from __future__ import annotations

from dataclasses import dataclass

from .step_graph import StepGraph, members

#: most states looked at in one search: some seconds
EXPANSIONS = 320_000


@dataclass(slots=True, eq=False)
class SearchState:
    """Steps `done` and steps `ready` to run next, as bit sets; the bytes alive now, and the peak.

    Step `ran` led here from `parent`. `ready` is computed only for the states that the beam keeps.
    """

    done: int
    ready: int
    alive: int
    peak: int
    parent: SearchState | None = None
    ran: int = -1

    def order(self) -> tuple[int, ...]:
        """Return the steps from the start to this state."""
        found: list[int] = []
        state = self
        while state.parent is not None:
            found.append(state.ran)
            state = state.parent
        return tuple(reversed(found))


def beam_search(graph: StepGraph, incumbent: int, width: int) -> tuple[tuple[int, ...] | None, bool]:
    """Find an order with a peak below `incumbent` bytes, or None; tell whether all orders were covered.

    `width` states are kept at each step. If none had to be dropped, the order is the best there is; or, if it is None,
    no order is better than the incumbent. The search gives up after EXPANSIONS states.
    """
    # No order is below `least`, so counting it as reached loses nothing, and lets more steps run at once.
    beam = [SearchState(0, graph.ready, graph.inputs - graph.unread, graph.least)]
    left = EXPANSIONS
    complete = True
    for _ in graph.before:
        best: dict[int, SearchState] = {}
        for state in beam:
            children = _children(graph, state, incumbent)
            left -= len(children)
            for child in children:
                other = best.get(child.done)
                if other is None or child.peak < other.peak:
                    best[child.done] = child
        # Python's sort is stable and dicts keep their order, so equal states stay in a fixed order.
        beam = sorted(best.values(), key=lambda state: (state.peak, state.alive))
        complete = complete and len(beam) <= width
        beam = beam[:width]
        if not beam or left < 0:
            return None, complete and not beam
        for state in beam:
            state.ready = graph.ready_after(state.ready, state.ran, state.done)
    return min(beam, key=lambda state: state.peak).order(), complete


def _children(graph: StepGraph, state: SearchState, incumbent: int) -> list[SearchState]:
    """Return the next states with a peak below `incumbent`; only one if its step is best run at once."""
    found = []
    for step in members(state.ready):
        added, growth = graph.price(step, state.done)
        top = state.alive + added
        if top >= incumbent:
            continue
        # the ready steps are those of the parent until the beam keeps the child
        child = SearchState(
            state.done | 1 << step, state.ready, state.alive + growth, max(state.peak, top), state, step
        )
        if state.done and growth <= 0 and top <= state.peak:
            return [child]
        found.append(child)
    return found
