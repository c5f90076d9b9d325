"""Abort a step that is stuck."""

from __future__ import annotations

from contextlib import AbstractContextManager

from .interrupts import deadline

#: seconds for one step in this process, on a busy machine: a longer one is stuck
_STEP_SECONDS = 1800


def step_limit(step: str, model: str) -> AbstractContextManager[None]:
    """Abort a step of `model` that is stuck: the process ends with exit code 2."""
    return deadline(
        _STEP_SECONDS,
        f"{step} took longer than {_STEP_SECONDS} s for '{model}', and was given up. Try a smaller input shape.",
    )
