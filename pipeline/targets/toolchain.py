"""The C toolchain for every target: the clang, linker and libc inside the PyPI package ziglang."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from ..errors import ToolchainError
from .target import Target

#: the first link for a target builds its libc: tens of seconds, more on a busy machine
_TIMEOUT_SECONDS = 900
#: what a user's shell may hold that would change what the compiler reads or writes
_LEAKY = ("CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH", "CFLAGS", "LDFLAGS", "DEPENDENCIES_OUTPUT")


def toolchain_version() -> str:
    """The toolchain's name and version, for manifest.json. Raises ToolchainError if it is missing."""
    try:
        return f"ziglang {version('ziglang')}"
    except PackageNotFoundError as error:
        raise _missing() from error


def zig_cc(args: Sequence[str], target: Target, cwd: Path, *, zig_target: str | None = None) -> None:
    """Compiles or links for `target` in the folder `cwd`, so that outputs hold relative names only.

    `zig_target` replaces the target's own, for another libc. Raises ToolchainError with the last lines zig wrote.
    """
    _run(["cc", "-target", zig_target or target.zig_target, *args], cwd)


def zig_ar(archive: str, members: Sequence[str], cwd: Path) -> None:
    """Writes `archive` of `members`, in that order, with no dates, owners or modes in it."""
    _run(["ar", "rcsD", archive, *members], cwd)


def _run(args: list[str], cwd: Path) -> None:
    if importlib.util.find_spec("ziglang") is None:
        raise _missing()
    environment = {key: value for key, value in os.environ.items() if key not in _LEAKY}
    command = [sys.executable, "-m", "ziglang", *args]
    try:
        done = subprocess.run(
            command,
            cwd=cwd,
            env=environment,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TIMEOUT_SECONDS,
        )
    except subprocess.TimeoutExpired as error:
        raise ToolchainError(
            f"zig {args[0]} did not finish in {_TIMEOUT_SECONDS} s.", "Run again on a less busy machine."
        ) from error
    if done.returncode != 0:
        raise ToolchainError(f"zig {args[0]} failed: {_reason(done.stderr or done.stdout) or done.returncode}")


def _reason(text: str) -> str:
    """The lines that name an error, else the last ones."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return " | ".join(([line for line in lines if "error:" in line] or lines)[-4:])


def _missing() -> ToolchainError:
    return ToolchainError("The C toolchain is missing.", "Install it with: pip install ziglang==0.17.0")
