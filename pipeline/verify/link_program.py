"""Link programs: native ones with the host's libc, others with a small one of our own, or with musl.

zig builds musl for each target and place of its package in 50 s; the small libc is compiled with each program.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from ..codegen.library import COMPILE_FLAGS
from ..errors import ToolchainError
from ..targets import Target, bare_target, program_libc, zig_cc, zig_link

_SMALL_LIBC = Path(__file__).parent / "small_libc.c"
_FLAGS = (*(flag for flag in COMPILE_FLAGS if flag not in ("-std=c11", "-fvisibility=hidden", "-fPIC")), "-std=gnu11")


def link_program(sources: Sequence[str], name: str, target: Target, folder: Path) -> None:
    """Compile and link `sources`, files in `folder`, into the program `name` there. Raises ToolchainError.

    The first is the C file of the program; the others may hold options of the linker.
    """
    libc, options = program_libc(target)
    with_musl = libc == target.zig_target
    if with_musl and "-lpthread" not in sources:
        with suppress(ToolchainError):  # a kernel calls a function of musl, or musl's link tells the fault
            _link_small(sources, name, target, folder)
            return
    link = zig_cc if with_musl else zig_link  # musl itself calls the compiler's runtime
    link([*_FLAGS, *options, *sources, "-lm", "-Wl,--gc-sections", "-o", name], target, folder, zig_target=libc)


def _link_small(sources: Sequence[str], name: str, target: Target, folder: Path) -> None:
    """Compile the small libc with the first of `sources`, a C file; headers are musl's, the rest is the compiler's."""
    shutil.copyfile(_SMALL_LIBC, folder / _SMALL_LIBC.name)
    program, *linked = sources
    # without knowledge of libc's functions clang makes no loop a call of one that the small libc lacks
    compiled = [*_FLAGS, "-fno-builtin", "-include", _SMALL_LIBC.name, "-c", program, "-o", f"{program}.o"]
    zig_cc(compiled, target, folder)
    bare = ["-nostdlib", "-static", "-Wl,--gc-sections"]
    zig_link([*bare, f"{program}.o", *linked, "-o", name], target, folder, zig_target=bare_target(target))
