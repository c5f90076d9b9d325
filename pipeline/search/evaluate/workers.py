"""Workers that compute outcomes, all with the same results in the same order.

This process (here), forked ones (`forked`), or any executor (`cluster`).
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable, Iterator

from .scoring import EvaluationOutcome, EvaluationRequest, Scorer, WorkerTask

#: the requests waiting for a worker, an ordered set
Waiting = dict[EvaluationRequest | WorkerTask, None]


class Workers(ABC):
    """Answer requests in order.

    Up to `window` of them wait for an answer, `farthest` windows ahead at most: where all are wanted, other workers go on
    during a long one. A search that ends before them does not need what was computed ahead.
    """

    window = 1
    farthest = 1

    def __init__(self) -> None:
        self._outcomes: dict[EvaluationRequest | WorkerTask, EvaluationOutcome] = {}
        self._scored: dict[int, EvaluationOutcome] = {}
        #: processor time taken in other processes of this machine
        self.seconds = 0.0

    def outcomes(self, requests: Iterable[EvaluationRequest | WorkerTask]) -> Iterator[EvaluationOutcome]:
        """Yield the outcome of each request, in order; outcomes not taken are cached for later requests."""
        requests = iter(requests)
        asked: deque[EvaluationRequest | WorkerTask] = deque()
        waiting: Waiting = {}
        while True:
            if asked and asked[0] in self._outcomes:
                yield self._outcomes[asked.popleft()]
                continue
            unanswered = sum(each not in self._outcomes for each in asked)
            ahead = list(
                itertools.islice(requests, min(self.window - unanswered, self.farthest * self.window - len(asked)))
            )
            asked.extend(ahead)
            waiting.update(dict.fromkeys(request for request in ahead if request not in self._outcomes))
            if not asked:
                return
            if asked[0] not in self._outcomes:
                self._advance(waiting, frozenset(self._scored))

    def close(self) -> None:  # noqa: B027 - workers without processes have none to end
        """End all processes at work."""

    @abstractmethod
    def _advance(self, waiting: Waiting, known: frozenset[int]) -> None:
        """Start some requests of `waiting` and `_keep` finished outcomes; called until the next one is there.

        States of `known` need no scoring.
        """

    def _keep(self, request: EvaluationRequest | WorkerTask, outcome: EvaluationOutcome) -> None:
        if isinstance(request, WorkerTask) or request.order or outcome.hopeless:
            pass  # not the score of the state
        elif outcome.key is not None and (outcome.footprint or outcome.failure):
            self._scored[outcome.key] = outcome
        elif outcome.key is not None and request.score:
            outcome = self._scored[outcome.key]
        self._outcomes[request] = outcome


class InProcess(Workers):
    """Answer requests one by one in this process: no start-up cost, but a crash or hang ends the search."""

    def __init__(self, scorer: Scorer):
        super().__init__()
        self._scorer = scorer

    def _advance(self, waiting: Waiting, known: frozenset[int]) -> None:
        request, _ = waiting.popitem()
        self._keep(request, self._scorer.outcome(request, known))
