"""Who works out the outcomes: this process, forked ones, or any executor. All give the same, in the same order."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable, Iterator

from .scoring import EvaluationOutcome, EvaluationRequest, Scorer, WorkerTask

#: the requests waiting for a worker, an ordered set
Waiting = dict[EvaluationRequest | WorkerTask, None]


class Workers(ABC):
    """Answers requests in their order, and works on up to `window` of them ahead of what is taken from it."""

    window = 1

    def __init__(self) -> None:
        self._outcomes: dict[EvaluationRequest | WorkerTask, EvaluationOutcome] = {}
        self._scored: dict[int, EvaluationOutcome] = {}

    def outcomes(self, requests: Iterable[EvaluationRequest | WorkerTask]) -> Iterator[EvaluationOutcome]:
        """The outcome of each request, in order. What a caller turns away from is kept for when it is asked again."""
        requests = iter(requests)
        asked: deque[EvaluationRequest | WorkerTask] = deque()
        waiting: Waiting = {}
        while True:
            ahead = list(itertools.islice(requests, self.window - len(asked)))
            asked.extend(ahead)
            waiting.update(dict.fromkeys(request for request in ahead if request not in self._outcomes))
            if not asked:
                return
            while asked[0] not in self._outcomes:
                self._advance(waiting, frozenset(self._scored))
            yield self._outcomes[asked.popleft()]

    def close(self) -> None:
        """End whatever works."""

    @abstractmethod
    def _advance(self, waiting: Waiting, known: frozenset[int]) -> None:
        """Take some of `waiting` to work on, and `_keep` what is there; it is called until what is needed is.

        States of `known` need no scoring.
        """

    def _keep(self, request: EvaluationRequest | WorkerTask, outcome: EvaluationOutcome) -> None:
        if isinstance(request, WorkerTask) or request.order or outcome.hopeless:
            pass  # not what the state is worth to the others
        elif outcome.key is not None and (outcome.footprint or outcome.failure):
            self._scored[outcome.key] = outcome
        elif outcome.key is not None and request.score:
            outcome = self._scored[outcome.key]
        self._outcomes[request] = outcome


class InProcess(Workers):
    """One request at a time in this process: nothing to start, but a pass that hangs or crashes is not survived."""

    def __init__(self, scorer: Scorer):
        super().__init__()
        self._scorer = scorer

    def _advance(self, waiting: Waiting, known: frozenset[int]) -> None:
        request, _ = waiting.popitem()
        self._keep(request, self._scorer.outcome(request, known))
