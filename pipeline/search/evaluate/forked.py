"""Workers forked from this process: they share its graph, and the search survives their deaths."""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Callable, Sequence
from itertools import takewhile
from multiprocessing.connection import wait

from ...kernels.schedule.shared_log import SharedLog
from ...kernels.schedule.summaries import ScheduleSummaries
from .child import CandidateLimits, Child, ChildDied
from .scoring import EvaluationOutcome, EvaluationRequest, Scorer, WorkerTask
from .workers import InProcess, Waiting, Workers

#: requests to choose from, per worker: with fewer, neighbours go to different workers, and both replay their prefix
AHEAD = 8
#: seconds with one worker only: a search that ends so soon is slower with two, as each fills its own caches
ALONE = 1.0


def forked(
    count: int | None = None, limits: CandidateLimits = CandidateLimits(), farthest: int = 1
) -> Callable[[Scorer], Workers]:
    """Fork `count` processes, by default one per usable core; 0: evaluate in this process. `farthest` as in Workers.

    So do systems other than Linux. Without a fork, `limits` cannot be held.
    """
    if count == 0 or sys.platform != "linux":
        return InProcess
    return lambda scorer: Forked(scorer, count or len(os.sched_getaffinity(0)), limits, farthest)


class Forked(Workers):
    """Run up to `count` children, forked on demand.

    A candidate whose child dies is tried once more in a new one, since the cause may have been outside (a SIGKILL).
    Only that candidate is retried: the request of each child is known.
    """

    def __init__(self, scorer: Scorer, count: int, limits: CandidateLimits, farthest: int = 1):
        super().__init__()
        self.window, self.farthest = 1 if count == 1 else AHEAD * count, farthest
        self._scorer, self._count, self._limits = scorer, count, limits
        self._children: list[Child] = []
        self._suspects: set[EvaluationRequest | WorkerTask] = set()
        self._together = math.inf
        scorer.summaries = ScheduleSummaries(SharedLog())

    def close(self) -> None:
        while self._children:
            self._children.pop().end()
        self._scorer.summaries.end()

    def _advance(self, waiting: Waiting, known: frozenset[int]) -> None:
        while waiting and (child := self._idle()):
            request = _nearest(waiting, child, [each for each in self._children if each is not child])
            del waiting[request]
            child.ask(request, known)
        more = bool(waiting) and len(self._children) < self._count
        until = max(0.0, self._together - time.monotonic()) if more else None
        ready = wait([each.fileno() for each in self._children if each.request is not None], until)
        for child in [each for each in self._children if each.fileno() in ready]:
            self._take(child, waiting)

    def _idle(self) -> Child | None:
        """Return an idle child, forked now if allowed; None if all are busy."""
        for child in self._children:
            if child.request is None:
                return child
        now = time.monotonic()
        if not self._children:
            self._together = min(self._together, now + ALONE)
        elif len(self._children) == self._count or now < self._together:
            return None
        self._children.append(Child(self._scorer, self._limits, backwards=bool(len(self._children) % 2)))
        return self._children[-1]

    def _take(self, child: Child, waiting: Waiting) -> None:
        request = child.request
        assert request is not None
        try:
            outcome = child.answer()
            self.seconds += outcome.seconds
            self._keep(request, outcome)
        except ChildDied as death:
            self._children.remove(child)
            if death.final or request in self._suspects:
                self._keep(request, EvaluationOutcome(failure=death.reason, died=True))
            else:
                self._suspects.add(request)
                waiting[request] = None


def _nearest(waiting: Waiting, child: Child, others: Sequence[Child]) -> EvaluationRequest | WorkerTask:
    """Choose the request with the longest prefix in common with the child's last one.

    Prefixes in common with other children's last requests count against it.
    """

    def gain(request: EvaluationRequest | WorkerTask) -> int:
        return _common(request, child.last) - max((_common(request, other.last) for other in others), default=0)

    return max(waiting, key=gain)


def _common(one: EvaluationRequest | WorkerTask, other: EvaluationRequest | WorkerTask) -> int:
    passes = zip((*one.specs, *one.order), (*other.specs, *other.order))
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], passes))
