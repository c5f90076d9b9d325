"""Build the libc of a target's programs beside other work.

zig builds it once a target, a place of its package, and some options. musl takes 50 s, which a search can hide.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

from ..errors import ToolchainError
from ..support.temporary_folder import scratch_folder
from ..targets import Target, start_zig_cc
from .runner import program_options

_PROGRAM = "#include <math.h>\nint main(int count, char **words) { (void)words; return (int)sin(count); }\n"
#: zig targets whose libc this process has started to build
_started: set[str] = set()


@contextmanager
def libc_aside(target: Target) -> Iterator[None]:
    """Build the libc of the target's programs beside the block, which ends that; once a process, since zig keeps it.

    The link that needs it waits for it, and reports its faults.
    """
    libc, options = program_options(["main.c"], "main", target)
    if libc in _started:
        yield
        return
    _started.add(libc)
    with scratch_folder() as folder, ExitStack() as ended:
        (folder / "main.c").write_text(_PROGRAM, encoding="ascii")
        with suppress(ToolchainError):
            ended.callback(_end, start_zig_cc(options, target, folder, zig_target=libc))
        yield


def _end(process: subprocess.Popen) -> None:
    process.kill()
    process.wait()
