"""Processes that tests send signals to."""

from __future__ import annotations

import signal


def hear_interrupts() -> None:
    """For `preexec_fn`: a job in the background, or under nohup, has its children ignore signals; Python leaves it so."""
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, signal.SIG_DFL)


def ignore_interrupts() -> None:
    """For `preexec_fn`: as a shell starts a job in the background."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
