"""Every error a user can cause, in one hierarchy. A message says what, where, and the next step."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class PassfitError(Exception):
    """Bad usage or bad input: the command line prints the message and exits with 2, without a traceback.

    `what` is one sentence that also says where; `hint` is the next step, an imperative sentence.
    """

    def __init__(self, what: str, hint: str = ""):
        super().__init__(f"{what} {hint}".strip())
        self.what = what
        self.hint = hint


class ModelError(PassfitError):
    """The model cannot be read, or holds something that cannot be compiled."""


class ConfigError(PassfitError):
    """params.yaml, pyproject.toml or an option holds something unknown or malformed."""


class TargetError(PassfitError):
    """A target is unknown, or its description is wrong."""


class SequenceError(PassfitError):
    """A pass spec or a sequence file cannot be used."""


class ToolchainError(PassfitError):
    """A compiler or emulator is missing, or failed."""


class OutputError(PassfitError):
    """A result cannot be written where it was asked for."""


class NumericError(PassfitError):
    """The compiled library computes something else than ONNX Runtime. `outputs` are the errors of each output, where
    they are known: plain objects, for a file."""

    def __init__(self, what: str, hint: str = "", outputs: tuple[dict, ...] = ()):
        super().__init__(what, hint)
        self.outputs = outputs

    def add_place(self, file: object) -> None:
        """Say in the message where the errors are written."""
        self.hint = f"{self.hint} The errors of each output are in '{file}'.".strip()
        self.args = (f"{self.what} {self.hint}",)


class PlanError(Exception):
    """A memory plan broke a rule. It is a bug of ours, never the user's: exit code 3."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A hint that names the nearest of `known`, or lists them all."""
    known = sorted(known)
    near = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    if near:
        return f"Did you mean '{near[0]}'?"
    return f"Known: {', '.join(known)}." if known else ""
