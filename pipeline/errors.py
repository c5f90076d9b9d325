"""Define every error a user can cause, in one hierarchy; messages name problem, place and next step."""

from __future__ import annotations

import difflib
import errno
import os
from collections.abc import Iterable

#: errno values of a full or read-only disk
USED_UP = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS})
#: errno values of names that no file can have, links in a circle, a file in place of a folder or the reverse, permissions
_NO_FILE = frozenset({
    errno.ENAMETOOLONG, errno.ELOOP, errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.EACCES, errno.EPERM,
})  # fmt: skip


class PassfitError(Exception):
    """Bad usage or bad input; the command line prints it and exits with 2, without a traceback.

    `what` is one sentence with problem and place; `hint` is the next step, an imperative sentence. Both are one line:
    control characters of names from a model or a file are written as escapes.
    """

    def __init__(self, what: str, hint: str = ""):
        what, hint = _printable(what), _printable(hint)
        super().__init__(f"{what} {hint}".strip())
        self.what = what
        self.hint = hint


def _printable(text: str) -> str:
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)


class ModelError(PassfitError):
    """Unreadable model, or one with a part that cannot be compiled."""


class ConfigError(PassfitError):
    """Unknown or malformed setting in params.yaml, pyproject.toml or an option."""


class TargetError(PassfitError):
    """Unknown target, or a wrong description of one."""


class SequenceError(PassfitError):
    """Unusable pass spec or sequence file."""


class ToolchainError(PassfitError):
    """Missing or failed compiler or emulator."""


class OutputError(PassfitError):
    """Result that cannot be written to its place."""


class NumericError(PassfitError):
    """Output of the compiled library that differs from ONNX Runtime's.

    `outputs` are the errors of each output, if they are known: plain objects, for a file.
    """

    def __init__(self, what: str, hint: str = "", outputs: tuple[dict, ...] = ()):
        super().__init__(what, hint)
        self.outputs = outputs

    def add_place(self, file: object) -> None:
        """Name in the message the file with the errors."""
        self._hint(f"{self.hint} The errors of each output are in '{file}'.")

    def suspect(self, cause: str) -> None:
        """Add another suspect to the message, to be checked first."""
        self._hint(f"Check {cause} first. {self.hint}")

    def _hint(self, text: str) -> None:
        self.hint = _printable(text).strip()
        self.args = (f"{self.what} {self.hint}",)


class PlanError(Exception):
    """Broken rule in a memory plan: a bug of ours, never the user's; exit code 3."""


def environment_error(error: Exception) -> OutputError | None:
    """Say in one sentence that disk or memory is used up, or a file cannot be opened; None for an error of another kind."""
    if isinstance(error, MemoryError) or "std::bad_alloc" in str(error):
        return OutputError(
            "There is not enough memory for this model.", "Give smaller shapes (--shape), or free memory."
        )
    where = ""
    if isinstance(error, OSError) and isinstance(error.filename, (str, bytes)):
        where = f" '{os.fsdecode(error.filename)}'"
    if isinstance(error, OSError) and error.errno in _NO_FILE:
        return OutputError(
            f"The file{where} cannot be opened: {error.strerror}.", "Name another file, or mend this one."
        )
    if isinstance(error, OSError) and error.errno in USED_UP:
        return OutputError(
            f"The file{where} cannot be written: {error.strerror}.", "Free space, or set TMPDIR to another folder."
        )
    return None


def reason_of(error: Exception) -> str:
    """Describe an error in one line: a sentence of ours, or the kind and the last line of another's."""
    if isinstance(error, PassfitError):
        return " ".join(error.what.split())
    lines = [line.strip() for line in str(error).splitlines() if line.strip() and not line.startswith("#")]
    return f"{type(error).__name__}: {lines[-1]}"[:300] if lines else type(error).__name__


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return a hint that names the nearest of `known`, or lists them all."""
    known = sorted(known)
    near = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    if near:
        return f"Did you mean '{near[0]}'?"
    return f"Known: {', '.join(known)}." if known else ""
