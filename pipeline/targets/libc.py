"""Choose the libc of programs and shared objects."""

from __future__ import annotations

import platform
from pathlib import Path

from .emulator import how_to_run
from .target import Target

#: glibc of manylinux_2_28: older than that of any supported Python
_GLIBC = "gnu.2.28"
#: loaders of glibc's programs, by architecture; some distributions have them elsewhere
_LOADERS = {"x86_64": "/lib64/ld-linux-x86-64.so.2", "aarch64": "/lib/ld-linux-aarch64.so.1", "arm": "/lib/ld-linux-armhf.so.3",
            "riscv64": "/lib/ld-linux-riscv64-lp64d.so.1"}  # fmt: skip


def host_libc(target: Target) -> str:
    """Return the zig target with this host's libc, for shared objects that the host loads."""
    cpu, system, libc = target.zig_target.split("-")
    if platform.libc_ver()[0] == "glibc":
        libc = libc.replace("musl", _GLIBC) if libc == "musl" else libc
    return f"{cpu}-{system}-{libc}"


def program_libc(target: Target) -> tuple[str, list[str]]:
    """Return the zig target and options of programs: the host's glibc for native ones, else musl, linked statically.

    glibc's stubs are built in 3 s, musl in 50.
    """
    host = host_libc(target)
    loader = Path(_LOADERS.get(target.architecture, ""))
    if how_to_run(target).native and host.endswith(_GLIBC) and loader.is_file():
        return host, ["-Wl,-z,now"]  # no page is written at a first call
    return target.zig_target, ["-static"]


def bare_target(target: Target) -> str:
    """Return the zig target without a libc, of the same ABI."""
    cpu, system, libc = target.zig_target.split("-")
    return f"{cpu}-{system}-{libc.removeprefix('musl') or 'none'}"
