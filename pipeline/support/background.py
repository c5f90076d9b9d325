"""Run tasks in a forked process during the caller's own work, on cores that this leaves idle.

    with background(code, cases) as results:  the process computes `code`, then `cases`
        search()                              on all cores, and sometimes on one
        compare(results.of(1))                waits for the cases, if they are not there yet

The process has low priority. A crash, in LLVM or ONNX Runtime for instance, ends only this process.
"""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

from .children import begin_fork, describe_end

#: seconds of processor time after which the tasks left have no result
SECONDS = 600.0
#: wall time for each second of processor time: other work on the machine costs no result
PATIENCE = 10
#: lower priority, as for the command `nice`: a tenth of a core that others want
_NICE = 10

Task = Callable[[], Any]


class BackgroundResults:
    """Receive the results of tasks; None for a task that failed, or that the process did not end.

    `death` says how the process died, if it did.
    """

    def __init__(self, connection: Connection, process: BaseProcess, count: int, seconds: float):
        self._connection, self._process, self._count, self._seconds = connection, process, count, seconds
        self.death = ""
        self._found: list[Any | None] = []
        self._over = False

    def of(self, number: int) -> Any | None:
        """Wait for a result."""
        while len(self._found) <= number:
            self._found.append(self._next())
        return self._found[number]

    def ready(self) -> bool:
        """Return whether all results can be taken without waiting."""
        while not self.taken and (self._over or self._connection.poll()):
            self._found.append(self._next())
        return self.taken

    @property
    def taken(self) -> bool:
        """Return whether all results are taken: a fork of this process has them too, and must not read others."""
        return len(self._found) == self._count

    def all(self) -> list[Any | None]:
        """Wait for all results."""
        return [self.of(number) for number in range(self._count)]

    def _next(self) -> Any | None:
        try:
            if not self._over and self._connection.poll(self._seconds):
                return self._connection.recv()
        except (EOFError, OSError):  # it died, unless its last task is done
            self._process.join()
            self.death = describe_end(self._process.exitcode or 0) if self._process.exitcode else ""
        self._over = True  # a result that comes too late is not the next one
        return None


@contextmanager
def background(*tasks: Task, seconds: float = SECONDS, nice: int = _NICE) -> Iterator[BackgroundResults]:
    """Start the tasks, one after another, in a process that ends with the context; one of them may do the same.

    `seconds` are those of the processor, for all tasks; `nice` is added to the priority of this process. Results are
    pickled, and sent one by one: a large one comes last.
    """
    context = get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(
        target=_serve, args=(theirs, tasks, seconds, nice, os.getpid())
    )  # no daemon: it may start others
    # an interrupt between the fork and the child's own handler would unwind the parent's stack in the child
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        process.start()
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    theirs.close()
    try:
        yield BackgroundResults(ours, process, len(tasks), PATIENCE * seconds)
    finally:
        process.kill()
        process.join()
        ours.close()


def compute_apart(task: Task) -> Any:
    """Return the result of a task computed in a process of its own, which may crash. Raises its error, and ChildProcessError."""
    with background(task, nice=0) as results:
        found = results.of(0)
        if results.death:
            raise ChildProcessError(results.death)
    return task() if found is None else found


def _serve(connection: Connection, tasks: Sequence[Task], seconds: float, nice: int, parent: int) -> None:
    """Run the tasks in the child: silent, and deaf to Ctrl-C, which the parent handles."""
    begin_fork(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGPROF, signal.SIG_DFL)  # ends the process, inside C++ too
    signal.setitimer(signal.ITIMER_PROF, seconds)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.nice(nice)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in (1, 2):
        os.dup2(nowhere, standard)
    for task in tasks:
        connection.send(_result(task))


def _result(task: Task) -> Any | None:
    try:
        return task()
    except Exception:  # the caller decides: it may do without, or run the task itself for the error
        return None
