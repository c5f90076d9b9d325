"""End the process soon after Ctrl-C or a signal to terminate, even inside TVM.

    signal ─► Python's handler raises in the main thread ─► blocks end ─► one line, exit code 128 + signal
         └──► a thread waits for GRACE ─► children killed, folders removed ─► the same by force

Python runs handlers between its own instructions only. A call of TVM or LLVM can take minutes, and a thread pool waits
for such calls. So the C handler tells a second thread, through a pipe. It needs no answer from the main thread.

A SIGINT that was ignored when the process began stays ignored, as a shell asks for jobs in the background.
"""

from __future__ import annotations

import os
import select
import shutil
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from types import FrameType

#: seconds from a signal to the end by force
GRACE = 1.2
#: seconds for one step in this process, on a busy machine: a longer one is stuck
_STEP_SECONDS = 1800
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_SHOW_CURSOR = b"\x1b[?25h"

#: folders to remove when the process ends by force
_folders: set[str] = set()
_watch: _Watch | None = None


@contextmanager
def interruptible() -> Iterator[None]:
    """Answer signals within GRACE seconds while the block runs.

    For the entry point of a process, in its main thread; it may be nested. Ctrl-C raises KeyboardInterrupt; SIGTERM and
    SIGHUP raise SystemExit with 128 + their number. A block that takes longer to end is ended by force; a second signal
    ends the process at once.
    """
    global _watch
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    with ExitStack() as restored:
        if _watch is None:
            _watch = _Watch()
            restored.callback(_forget)
            restored.callback(setattr, sys, "unraisablehook", sys.unraisablehook)
            sys.unraisablehook = _report_others
            restored.callback(signal.set_wakeup_fd, signal.set_wakeup_fd(_watch.told, warn_on_full_buffer=False))
            for each in _SIGNALS:
                before = signal.getsignal(each)
                if before != signal.SIG_IGN:
                    signal.signal(each, _raise)
                    restored.callback(signal.signal, each, before)
        try:
            yield
        except BaseException:
            # at once: to take down TVM's graphs, and to wait for threads, can take seconds
            if _watch is not None and _watch.number:
                sys.stdout.flush()
                end_by_force(_said(_watch.number), 128 + _watch.number)
            raise


@contextmanager
def patient(seconds: float) -> Iterator[None]:
    """Give the block `seconds` to save its results after a first Ctrl-C.

    A second Ctrl-C ends it.
    """
    watch = _watch
    if watch is None:
        yield
        return
    before, watch.grace = watch.grace, seconds
    try:
        yield
    finally:
        watch.grace = before
        if watch.number == signal.SIGINT:
            watch.number = 0
            watch.answered.set()


@contextmanager
def deadline(seconds: float, message: str) -> Iterator[None]:
    """End the process with exit code 2 and `message` if the block takes longer; without `interruptible`, wait."""
    if _watch is None:
        yield
        return
    timer = threading.Timer(seconds, end_by_force, (message, 2))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def step_limit(step: str, model: str) -> AbstractContextManager[None]:
    """Abort a step of `model` that is stuck: the process ends with exit code 2."""
    return deadline(
        _STEP_SECONDS,
        f"{step} took longer than {_STEP_SECONDS} s for '{model}', and was given up. Try a smaller input shape.",
    )


@contextmanager
def remove_by_force(folder: str | Path) -> Iterator[None]:
    """Remove `folder` if the process ends by force within the block."""
    _folders.add(str(folder))
    try:
        yield
    finally:
        _folders.discard(str(folder))


def end_by_force(message: str, code: int) -> None:
    """End this process at once, with `message` as the last line.

    Its descendants are killed, its folders removed.
    """
    for process in _descendants(os.getpid()):
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    for folder in sorted(_folders):
        shutil.rmtree(folder, ignore_errors=True)
    os.write(2, (_SHOW_CURSOR if os.isatty(2) else b"") + f"passfit: {message}\n".encode())
    os._exit(code)


class _Watch:
    """Thread that hears of signals; `number` is the signal without an answer yet, or 0."""

    def __init__(self) -> None:
        self.heard, self.told = os.pipe()
        os.set_blocking(self.told, False)
        self.grace = GRACE
        self.number = 0
        self.answered = threading.Event()
        threading.Thread(target=self._listen, name="passfit-interrupts", daemon=True).start()

    def _listen(self) -> None:
        while (number := self._next(None)) is not None:
            if number not in _SIGNALS or signal.getsignal(number) is not _raise:
                continue
            self.number = number
            self.answered.clear()
            again = self._next(self.grace if number == signal.SIGINT else GRACE)
            if again is None:
                return
            if not again and self.answered.is_set():
                continue
            end_by_force(_said(number), 128 + number)

    def _next(self, seconds: float | None) -> int | None:
        """Return the next signal's number, 0 after `seconds`, None once the pipe is closed."""
        ready, _, _ = select.select([self.heard], [], [], seconds)
        if not ready:
            return 0
        told = os.read(self.heard, 1)
        return told[0] if told else None


def _forget() -> None:
    global _watch
    assert _watch is not None
    os.close(_watch.told)
    _watch = None


def _raise(number: int, _frame: FrameType | None) -> None:
    if _watch is not None:
        _watch.number = number
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    raise SystemExit(128 + number)


def _report_others(lost: sys.UnraisableHookArgs) -> None:
    """Report what a callback of Python raised, unless it is the answer to a signal: the watch ends the process then."""
    if _watch is None or not _watch.number:
        sys.__unraisablehook__(lost)


def _said(number: int) -> str:
    return "interrupted." if number == signal.SIGINT else f"ended by {signal.Signals(number).name}."


def _descendants(process: int) -> list[int]:
    """List the processes below `process`, on Linux; parents first."""
    children: dict[int, list[int]] = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(status.read_text(errors="replace").rpartition(")")[2].split()[1])
        except OSError:
            continue
        children.setdefault(parent, []).append(int(status.parent.name))
    found = [process]
    for each in found:
        found += children.get(each, [])
    return found[1:]
