"""Forked process that answers one request at a time, within limits of time and memory."""

from __future__ import annotations

import os
import resource
import signal
import time
import traceback
import warnings
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import NoReturn

from ...support.background import PATIENCE
from ...support.children import describe_end, fork
from .scoring import EvaluationOutcome, EvaluationRequest, Scorer, WorkerTask

#: beginnings of the reasons of candidates over a limit
OVER_LIMIT = _TOO_LONG, _TOO_LARGE = ("took longer than", "needed more than")
#: signals of the timers of processor time and wall time
_TIMERS = (signal.SIGPROF, signal.SIGALRM)
#: signals handled by the parent
_PARENTS = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}


@dataclass(frozen=True)
class CandidateLimits:
    """Limits of one candidate: processor time, PATIENCE times that in wall time, and bytes beyond the size before it."""

    seconds: float = 120.0
    nbytes: int = 8 << 30


#: limits where a result must not depend on the machine: against a candidate that never ends
PATIENT = CandidateLimits(seconds=900.0)


class ChildDied(Exception):
    """Death of a child during a request. `final`: by a limit of ours, so a retry is pointless."""

    def __init__(self, reason: str, final: bool):
        super().__init__(reason)
        self.reason, self.final = reason, final


class _InChild(Exception):
    """Traceback of an exception in the child: the cause of the one raised here."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


class Child:
    """Serve requests in a forked process.

    `request` is the one in progress, None if idle; `last` is the latest. `backwards` is the order in which it schedules
    the kernels of each state, see `ScheduleSummaries`. `fileno` is readable on an answer or on its death.
    """

    def __init__(self, scorer: Scorer, limits: CandidateLimits, backwards: bool = False):
        self.request: EvaluationRequest | WorkerTask | None = None
        self.last: EvaluationRequest | WorkerTask = EvaluationRequest(())
        self._limits = limits
        self._connection, theirs = Pipe()
        # an interrupt between the fork and the child's own handlers would unwind the parent's stack in the child
        signal.pthread_sigmask(signal.SIG_BLOCK, _PARENTS)
        try:
            with warnings.catch_warnings():
                # Python 3.12 warns of threads lost by the fork; none of them holds a lock of TVM's
                warnings.simplefilter("ignore", DeprecationWarning)
                self._pid = fork()
            if self._pid == 0:
                scorer.summaries.backwards = backwards
                _serve(theirs, scorer, limits)
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _PARENTS)
        theirs.close()

    def fileno(self) -> int:
        return self._connection.fileno()

    def ask(self, request: EvaluationRequest | WorkerTask, known: frozenset[int]) -> None:
        self.request = self.last = request
        with suppress(OSError):  # dead: `answer` raises
            self._connection.send((request, known))

    def answer(self) -> EvaluationOutcome:
        """Wait for the outcome of `request`. Raises ChildDied, and re-raises a bug of the child."""
        try:
            answer = self._connection.recv()
        except (EOFError, OSError):
            raise self._death() from None
        self.request = None
        if isinstance(answer, EvaluationOutcome):
            return answer
        error, trace = answer
        raise error from _InChild(trace)

    def end(self) -> None:
        """Kill it and wait for its end."""
        os.kill(self._pid, signal.SIGKILL)
        self._reap()

    def _reap(self) -> int:
        self._connection.close()
        _, status = os.waitpid(self._pid, 0)
        return os.waitstatus_to_exitcode(status)

    def _death(self) -> ChildDied:
        code = self._reap()
        if -code in _TIMERS:
            return ChildDied(f"{_TOO_LONG} {self._limits.seconds:g} s", final=True)
        return ChildDied(describe_end(code), final=False)


def _serve(connection: Connection, scorer: Scorer, limits: CandidateLimits) -> NoReturn:
    """Answer requests until the parent ends; silent, and deaf to Ctrl-C, which the parent handles."""
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _PARENTS)
        for timer in _TIMERS:
            signal.signal(timer, signal.SIG_DFL)  # ends the process, inside C++ too
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        shared = scorer.summaries.lines
        _close_inherited_files(connection.fileno(), *([] if shared is None else [shared.fileno]))
        while True:
            request, known = connection.recv()
            connection.send(_answer(request, known, scorer, limits))
    finally:
        os._exit(1)


def _close_inherited_files(*kept: int) -> None:
    """Close all descriptors except `kept`; redirect the standard ones to /dev/null.

    A sibling's pipe or a socket left open here would outlive the parent and hide its end from the other side.
    """
    for last, following in pairwise((2, *sorted(kept), os.sysconf("SC_OPEN_MAX"))):
        os.closerange(last + 1, following)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in range(3):
        os.dup2(nowhere, standard)


def _answer(
    request: EvaluationRequest | WorkerTask, known: frozenset[int], scorer: Scorer, limits: CandidateLimits
) -> EvaluationOutcome | tuple[Exception, str]:
    _limit_time(limits.seconds)
    _limit_memory(_data_bytes() + limits.nbytes)
    started = time.process_time()
    try:
        outcome = scorer.outcome(request, known)
    except MemoryError:
        outcome = EvaluationOutcome(failure="MemoryError")
    except Exception as error:  # a bug: raised again in the parent
        return error, traceback.format_exc()
    finally:
        _limit_memory(resource.RLIM_INFINITY)
        _limit_time(0.0)
    if "MemoryError" in outcome.failure or "bad_alloc" in outcome.failure:
        return EvaluationOutcome(failure=f"{_TOO_LARGE} {limits.nbytes / (1 << 30):g} GiB", died=True)
    return replace(outcome, seconds=time.process_time() - started)


def _limit_time(seconds: float) -> None:
    """Start the timers that end this process; 0 stops them."""
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.setitimer(signal.ITIMER_REAL, PATIENCE * seconds)


def _limit_memory(nbytes: int) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    soft = nbytes if hard == resource.RLIM_INFINITY else hard if nbytes < 0 else min(nbytes, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def _data_bytes() -> int:
    """Return the private writable memory of this process in bytes, as RLIMIT_DATA counts it."""
    with open("/proc/self/statm", encoding="ascii") as statm:
        return int(statm.read().split()[5]) * resource.getpagesize()
