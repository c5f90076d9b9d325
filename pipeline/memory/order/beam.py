"""Beam search over sets of finished steps, for an order with a lower peak.

The bytes alive depend only on the set of finished steps, so of two orders that reach one set only the lower peak counts
(Ahn et al., Ordering Chaos, MLSys 2020). A step that frees as much as it takes, without a new peak, is run at once:
no order gains by putting it off.
"""

from __future__ import annotations

from dataclasses import dataclass

from .step_graph import StepGraph, members

#: states looked at, at most, per state the beam keeps
EXPANSIONS = 10_000


@dataclass(slots=True)
class BeamState:
    """Steps `done` (a bit set), the last `step`, the bytes alive now, and the peak.

    `ready` are the steps that can run next, computed only for the states that are kept.
    """

    done: int
    alive: int
    peak: int
    step: int
    parent: BeamState | None
    ready: int = 0

    def order(self) -> tuple[int, ...]:
        """Return the steps from the start to this state."""
        steps, state = [], self
        while state.parent is not None:
            steps.append(state.step)
            state = state.parent
        return tuple(steps[::-1])


def beam_search(graph: StepGraph, incumbent: int, width: int) -> tuple[tuple[int, ...] | None, bool]:
    """Find an order with a peak below `incumbent` bytes, or None; tell whether all orders were covered.

    `width` states are kept at each step. If none had to be dropped, the order is the best there is; or, if it is None,
    no order is better than the incumbent. The search gives up after `EXPANSIONS * width` states.
    """
    ready = sum(1 << step for step, needs in enumerate(graph.before) if not needs)
    # No order is below `least`, so counting it as reached loses nothing, and lets more steps run at once.
    beam = [BeamState(0, graph.inputs, graph.least, -1, None, ready)]
    left = EXPANSIONS * width
    complete = True
    for _ in graph.before:
        best: dict[int, BeamState] = {}
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
            state.ready = _ready(graph, state)
    return min(beam, key=lambda state: state.peak).order(), complete


def _children(graph: StepGraph, state: BeamState, incumbent: int) -> list[BeamState]:
    """Return the next states with a peak below `incumbent`; only one if its step is best run at once."""
    found = []
    for step in members(state.ready):
        top = state.alive + graph.added(step, state.done)
        alive = top - graph.freed(step, state.done)
        if top >= incumbent:
            continue
        done = state.done | 1 << step
        at_once = state.done and alive <= state.alive and top <= state.peak
        child = BeamState(done, alive, max(state.peak, top), step, state)
        if at_once:
            return [child]
        found.append(child)
    return found


def _ready(graph: StepGraph, state: BeamState) -> int:
    """Return the steps ready after the last one of `state`, as a bit set."""
    assert state.parent is not None
    ready = state.parent.ready ^ 1 << state.step
    for later in graph.after[state.step]:
        if not graph.before[later] & ~state.done:
            ready |= 1 << later
    return ready
