"""Shared libraries of C for this machine, against the libc that passfit's own use: zig builds each other one in 20 s."""

from __future__ import annotations

from pathlib import Path

from passfit.targets import host_libc, native_target, zig_cc


def shared_library(source: str, path: Path) -> Path:
    """Compile `source`, and link it by a linker's defaults: an undefined symbol is not an error."""
    target = native_target()
    assert target, "no target of the catalogue runs here"
    c = path.with_suffix(".c")
    c.write_text(source, encoding="ascii")
    zig_cc(["-shared", "-fPIC", "-o", path.name, c.name], target, path.parent, zig_target=host_libc(target))
    return path
