"""`orchestrated`: known sequences first, then every graph that can be reached, each by every way down.

    starts ──► closure over graph states ──► every tail on every state, the most promising first

Sequences collapse: most passes change nothing on a given graph, and many orders lead to the same one. So graphs are
enumerated breadth-first with a transposition table keyed by structural hash; where that ends within the limits, and
every tail has been tried on every graph, the result is proved to be the best of these actions (`closed`).
"""

from __future__ import annotations

from ...passes.base import Pass
from ..actions import TAILS, Candidate, cleaned, starts
from ..evaluation import FAILURES
from ..strategy import Trace

#: graph states looked at, at most: a safety net for graphs on which passes undo each other
STATES = 400

_Prefix = tuple[Pass, ...]


def orchestrated(trace: Trace, seed: int) -> None:
    """`seed` is not used: nothing is left to chance."""
    if trace.evaluate_all(starts()):
        return
    states, complete = _closure(trace)
    # A graph that is good by one way down is likely to be good by others, and a way down that wins on one graph wins
    # on others: the incumbent's tail first, then the states in the order of what that tail made of them.
    first = trace.best_candidate.tail
    if trace.evaluate_all(Candidate(prefix, first) for prefix in states):
        return
    promising = sorted(states, key=lambda prefix: _score(trace, Candidate(prefix, first)))
    if trace.evaluate_all(Candidate(prefix, tail) for prefix in promising for tail in TAILS):
        return
    trace.closed = complete


def _closure(trace: Trace) -> tuple[list[_Prefix], bool]:
    """The shortest prefix to every graph that can be reached, breadth-first; and whether these are all."""
    evaluator = trace.evaluator
    states: dict[int, _Prefix] = {evaluator.module(())[1]: ()}
    waiting: list[_Prefix] = [()]
    for prefix in waiting:
        for each in trace.passes:
            if each.lossy and each in prefix:  # once is loss enough, and each time would be another graph
                continue
            try:
                _, key = evaluator.module(cleaned((*prefix, each)))
            except FAILURES:
                continue
            if key in states:
                continue
            if len(states) == STATES or trace.finished:
                return list(states.values()), False
            states[key] = (*prefix, each)
            waiting.append(states[key])
    return list(states.values()), True


def _score(trace: Trace, candidate: Candidate) -> tuple[int, ...]:
    found = trace.evaluator.evaluate(candidate.passes)
    return (1,) if found.footprint is None else (0, *found.score)
