"""`orchestrated`: evaluate a coreset of other models, then every tail on the closure of graph states.

    coreset, starts ──► closure over graph states ──► every tail on every state, promising ones first ──► around the peak

Sequences collapse: most passes change nothing on a given graph, and many orders lead to the same one. So graphs are
enumerated breadth-first with a transposition table keyed by structural hash. If that ends within the limits, and every
tail was tried on every graph, the result is proved to be the best of these actions (`closed`).
"""

from __future__ import annotations

from ...memory.liveness import ALIGNMENT, aligned
from ...passes.sequence.sequence import specs_of
from ..evaluate.candidates import TAILS, Candidate, starts
from ..evaluate.closure import Closure, Prefix
from ..knowledge.explore import features_of
from .around_peak import around_peak
from .trace import Trace

#: candidates from which on loading the predictor pays, which takes seconds
RANKED = 64
#: beam width of the changes around the peak
WIDTH = 3
#: graph states at most: a safety net for graphs on which passes undo each other
STATES = 400


def orchestrated(trace: Trace, seed: int) -> None:
    """Search the closure of graph states by all tails; deterministic, `seed` is unused."""
    objective = trace.evaluator.objective
    trace.evaluate(Candidate())
    if trace.evaluate_all((*trace.knowledge.coreset(objective), *starts())):
        return
    # A graph that is good by one tail is likely to be good by others, and a tail that wins on one graph wins on
    # others: the incumbent's tail first, then the states in the order of their score by that tail.
    first = trace.best_candidate.tail
    states, complete = _closure(trace, first)
    if trace.finished:
        return
    promising = sorted(states, key=lambda prefix: _score(trace, Candidate(prefix, first)))
    rest = [Candidate(prefix, tail) for prefix in promising for tail in TAILS]
    if len(rest) > RANKED and trace.may_end_before(len(rest)):
        rest = trace.knowledge.ranking(objective, features_of(trace.evaluator))(rest)
    if trace.evaluate_all(rest):
        return
    trace.closed = complete
    if objective == "ram":
        _around_peak(trace)


def _around_peak(trace: Trace) -> None:
    """Beam-search fusion barriers around the peak of the best state while they improve it."""
    if trace.best is None or _is_least(trace):
        return
    frontier, before = [trace.best_candidate], None
    while frontier and trace.best is not before and not trace.finished:
        before = trace.best
        arenas: dict[Candidate, int] = {}
        for parent in frontier:
            found = trace.evaluator.evaluate(parent.passes)
            if found.footprint is None:
                continue
            for child in around_peak(trace.evaluator.scorer, parent, found):
                arenas[child] = max(found.footprint.arena, arenas.get(child, 0))
        # a child is not planned if its floor rules out a smaller arena than its parent's
        if trace.evaluate_all(arenas, arenas.values()):
            return
        frontier = sorted(arenas, key=lambda child: _score(trace, child, arenas[child]))[:WIDTH]


def _is_least(trace: Trace) -> bool:
    """Return whether the best arena equals the inputs, or the outputs, alone: no kernels are smaller."""
    assert trace.best is not None
    program = trace.evaluator.scorer.program(specs_of(trace.best.module_passes))
    least = max(
        sum(aligned(program.buffers[buffer].nbytes, ALIGNMENT) for buffer in buffers)
        for buffers in (program.input_buffers(), program.output_buffers())
    )
    return trace.best.result.arena <= least and not trace.best.result.workspace


def _closure(trace: Trace, tail: Prefix) -> tuple[list[Prefix], bool]:
    """Evaluate every graph that can be reached by `tail`. Return the shortest prefix to each; and whether these are all.

    As many graphs at a time as may still be evaluated: the passes on graphs that nobody evaluates take longer than a search.
    """
    closure = Closure(trace.evaluator, trace.passes, STATES)
    tried, complete = 0, True
    for edge in closure.edges():
        if trace.finished or edge.beyond:
            complete = False
            break
        if len(closure.prefixes) - tried >= trace.left:
            new, tried = closure.prefixes[tried:], len(closure.prefixes)
            trace.evaluate_all(Candidate(prefix, tail) for prefix in new)
    trace.evaluate_all(Candidate(prefix, tail) for prefix in closure.prefixes[tried:])
    return closure.prefixes, complete


def _score(trace: Trace, candidate: Candidate, below: int | None = None) -> tuple[int, ...]:
    found = trace.evaluator.evaluate(candidate.passes, below)
    return (1,) if found.footprint is None else (0, *found.score)
