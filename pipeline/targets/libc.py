"""Choose the libc of programs and shared objects; build it beside other work.

zig builds it once a target and a place of its package. musl takes 50 s, which a search can hide.
"""

from __future__ import annotations

import platform
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from ..errors import ToolchainError
from ..support.temporary_folder import scratch_folder
from .emulator import how_to_run
from .target import Target
from .toolchain import start_zig_cc

#: glibc of manylinux_2_28: older than that of any supported Python
_GLIBC = "gnu.2.28"
#: loaders of glibc's programs, by architecture; some distributions have them elsewhere
_LOADERS = {"x86_64": "/lib64/ld-linux-x86-64.so.2", "aarch64": "/lib/ld-linux-aarch64.so.1", "arm": "/lib/ld-linux-armhf.so.3",
            "riscv64": "/lib/ld-linux-riscv64-lp64d.so.1"}  # fmt: skip
_PROGRAM = "#include <math.h>\nint main(int count, char **words) { (void)words; return (int)sin(count); }\n"
#: zig targets whose libc this process has started to build
_started: set[str] = set()


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


@contextmanager
def libc_aside(target: Target) -> Iterator[None]:
    """Build the libc of the target's programs beside the block, which ends that; once a process, since zig keeps it.

    The link that needs it waits for it, and reports its faults.
    """
    with scratch_folder() as folder, ExitStack() as ended:
        (folder / "main.c").write_text(_PROGRAM, encoding="ascii")
        libc, options = program_libc(target)
        if libc not in _started:
            _started.add(libc)
            with suppress(ToolchainError):
                arguments = ["-O2", "main.c", "-lm", *options, "-o", "main"]
                ended.callback(_end, start_zig_cc(arguments, target, folder, zig_target=libc))
        yield


def _end(process: subprocess.Popen) -> None:
    process.kill()
    process.wait()
