"""Run the C toolchain for every target: clang, linker and libc of the PyPI package ziglang."""

from __future__ import annotations

import functools
import importlib.util
import os
import subprocess
import tempfile
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from ..errors import ToolchainError
from ..support.children import run
from .target import Target

#: the first link for a target builds its libc: tens of seconds, more on a busy machine
_TIMEOUT_SECONDS = 900
#: the environment variable for zig's cache folder
_CACHE = "ZIG_GLOBAL_CACHE_DIR"
#: variables of a user's shell that would change the compiler's inputs or outputs
_LEAKY = ("CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH", "CFLAGS", "LDFLAGS", "DEPENDENCIES_OUTPUT")


def toolchain_version() -> str:
    """Return the toolchain's name and version, for manifest.json. Raises ToolchainError if it is missing."""
    try:
        return f"ziglang {version('ziglang')}"
    except PackageNotFoundError as error:
        raise _missing() from error


def zig_cc(args: Sequence[str], target: Target, cwd: Path, *, zig_target: str | None = None) -> str:
    """Compile or link for `target` in the folder `cwd`; return what the compiler prints: the map of a link, if asked.

    Outputs then hold relative names only. `zig_target` replaces the target's own, for another libc. Raises
    ToolchainError with zig's error lines, else its last.
    """
    cpu = [f"-mcpu={target.zig_cpu}"] if target.bare else []
    return _run(["cc", "-target", zig_target or target.zig_target, *cpu, *args], cwd)


def zig_link(args: Sequence[str], target: Target, cwd: Path, *, zig_target: str | None = None) -> str:
    """Link for `target` in the folder `cwd`, with the compiler's runtime if a symbol needs it.

    zig builds that runtime in 4 s, and one for sanitizers in as many without -O2, for each target and place of its
    package. See `zig_cc`.
    """
    linked = ["-O2", "-g0", *args]
    try:
        return zig_cc([*linked, "-rtlib=none"], target, cwd, zig_target=zig_target)
    except ToolchainError:  # the second link tells any other fault
        return zig_cc([*linked, "-rtlib=compiler-rt"], target, cwd, zig_target=zig_target)


def zig_ar(archive: str, members: Sequence[str], cwd: Path) -> None:
    """Write `archive` of `members`, in that order, without dates, owners or modes."""
    _run(["ar", "rcsD", archive, *members], cwd)


def strip_debug(sources: Sequence[str], result: str, cwd: Path, unused: Sequence[str] = ()) -> None:
    """Join the objects `sources` to `result` without debug information, tables of the stack, and `unused` sections.

    `unused` are patterns of linker scripts. LLVM always adds these sections to TVM's kernels. The linker removes them,
    since `zig objcopy` takes programs only.
    """
    script = f"{result}.ld"
    tables = (f"*({section})" for section in (".debug*", ".eh_frame", ".ARM.exidx*", ".stack_sizes*"))
    (cwd / script).write_text(f"SECTIONS {{ /DISCARD/ : {{ {' '.join((*tables, *unused))} }} }}\n", encoding="utf-8")
    _run(["ld.lld", "-r", "-T", script, *sources, "-o", result], cwd)


def _run(args: list[str], cwd: Path) -> str:
    zig = _program()
    environment = {key: value for key, value in os.environ.items() if key not in _LEAKY}
    environment[_CACHE] = _cache(*map(os.environ.get, (_CACHE, "XDG_CACHE_HOME", "HOME")))
    try:
        done = run(
            [zig, *args],
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
    return done.stdout


def _program() -> str:
    """Return the path of the compiler; `python -m ziglang` starts an interpreter first. Raises ToolchainError."""
    package = importlib.util.find_spec("ziglang")
    zig = package and package.origin and Path(package.origin).with_name("zig")
    if not zig or not zig.is_file():
        raise _missing()
    return str(zig)


@functools.lru_cache(maxsize=8)
def _cache(chosen: str | None, caches: str | None, home: str | None) -> str:
    """Return zig's cache folder, which holds its libc.

    It is the user's choice, zig's own, or one below TMPDIR if zig's own is not writable.
    """
    usual = Path(caches) / "zig" if caches else Path(home) / ".cache" / "zig" if home else None
    folder = Path(chosen) if chosen else usual
    if folder and _is_writable(folder):
        return str(folder.absolute())
    own = Path(tempfile.gettempdir()) / f"passfit-zig-{os.geteuid()}"
    # TMPDIR is often shared: a folder another user made beforehand is not a place for objects that are linked
    if not chosen and _is_writable(own) and own.lstat().st_uid == os.geteuid() and not own.is_symlink():
        return str(own.absolute())
    raise ToolchainError(
        f"The C toolchain cannot write its cache '{folder or own}'.", f"Set {_CACHE} to a folder you can write to."
    )


def _is_writable(folder: Path) -> bool:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _reason(text: str) -> str:
    """Return the lines that name an error, else the last ones."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return " | ".join(([line for line in lines if "error:" in line] or lines)[-4:])


def _missing() -> ToolchainError:
    return ToolchainError("The C toolchain is missing.", "Install it with: pip install ziglang==0.17.0")
