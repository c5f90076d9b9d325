"""`greedy`: the best stock order, then the best single change, again and again until none helps."""

from __future__ import annotations

from collections.abc import Iterator

from ..passes.base import Pass
from .actions import STOCK_ORDERS, TAILS, graph_passes
from .strategy import Trace

_Candidate = tuple[tuple[Pass, ...], tuple[Pass, ...]]


def greedy(trace: Trace, seed: int) -> None:
    """A candidate is a prefix of graph passes and a tail that lowers. `seed` is not used: nothing is left to chance."""
    prefix, tail = (), TAILS[0]
    for candidate in _starts():
        if trace.consider(trace.evaluator.evaluate(sum(candidate, ()))):
            prefix, tail = candidate
        if trace.finished:
            return
    improved = True
    while improved:
        improved = False
        here = (prefix, tail)
        for candidate in _neighbours(*here):
            if trace.consider(trace.evaluator.evaluate(sum(candidate, ()))):
                prefix, tail = candidate
                improved = True
            if trace.finished:
                return


def _starts() -> Iterator[_Candidate]:
    yield (), TAILS[0]
    for tail in TAILS[1:]:
        yield (), tail
    for order in STOCK_ORDERS:
        yield order, TAILS[0]


def _neighbours(prefix: tuple[Pass, ...], tail: tuple[Pass, ...]) -> Iterator[_Candidate]:
    """One more graph pass at the end of the prefix, or another way down."""
    for each in graph_passes():
        if not prefix or prefix[-1] != each:
            yield (*prefix, each), tail
    for other in TAILS:
        if other != tail:
            yield prefix, other
