"""Workers forked from this process: they share its graph, and none can take the search down."""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Callable, Sequence
from multiprocessing.connection import wait

from ...kernels.schedule.shared_log import SharedLog
from ...kernels.schedule.summaries import ScheduleSummaries
from .child import CandidateLimits, Child, ChildDied
from .scoring import EvaluationOutcome, EvaluationRequest, Scorer, WorkerTask
from .workers import InProcess, Waiting, Workers

#: requests to choose from, per worker: with fewer, neighbours land on different workers, and both replay their prefix
AHEAD = 8
#: seconds in which one worker is left alone: a search that ends so soon is slower with two, as each learns for itself
ALONE = 1.0


def forked(count: int | None = None, limits: CandidateLimits = CandidateLimits()) -> Callable[[Scorer], Workers]:
    """`count` processes, as many as there are cores to use if None; 0, or a system other than Linux: in this process.

    Without a fork, `limits` cannot be held.
    """
    if count == 0 or sys.platform != "linux":
        return InProcess
    return lambda scorer: Forked(scorer, count or len(os.sched_getaffinity(0)), limits)


class Forked(Workers):
    """Up to `count` children, forked when there is something to do for them.

    A candidate whose child dies is tried once more, in a new one, since the cause may have been outside (a SIGKILL);
    only that candidate: which one a child was at is known.
    """

    def __init__(self, scorer: Scorer, count: int, limits: CandidateLimits):
        super().__init__()
        self.window = 1 if count == 1 else AHEAD * count
        self._scorer, self._count, self._limits = scorer, count, limits
        self._children: list[Child] = []
        self._suspects: set[EvaluationRequest | WorkerTask] = set()
        self._together = math.inf
        scorer.outlines = ScheduleSummaries(SharedLog())

    def close(self) -> None:
        while self._children:
            self._children.pop().end()
        self._scorer.outlines.end()

    def _advance(self, waiting: Waiting, known: frozenset[int]) -> None:
        while waiting and (child := self._idle()):
            request = _nearest(waiting, child, [each for each in self._children if each is not child])
            del waiting[request]
            child.ask(request, known)
        more = bool(waiting) and len(self._children) < self._count
        until = max(0.0, self._together - time.monotonic()) if more else None
        for child in wait([each for each in self._children if each.request is not None], until):
            self._take(child, waiting)

    def _idle(self) -> Child | None:
        """A child with nothing to do, forked now if there may be one more."""
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
            self._keep(request, child.answer())
        except ChildDied as death:
            self._children.remove(child)
            if death.final or request in self._suspects:
                self._keep(request, EvaluationOutcome(failure=death.reason, died=True))
            else:
                self._suspects.add(request)
                waiting[request] = None


def _nearest(waiting: Waiting, child: Child, others: Sequence[Child]) -> EvaluationRequest | WorkerTask:
    """The request that has most of its passes in common with what this child did last, and least with the others."""

    def gain(request: EvaluationRequest | WorkerTask) -> int:
        return _common(request, child.last) - max((_common(request, other.last) for other in others), default=0)

    return max(waiting, key=gain)


def _common(one: EvaluationRequest | WorkerTask, other: EvaluationRequest | WorkerTask) -> int:
    return len(os.path.commonprefix([one.specs, other.specs]))
