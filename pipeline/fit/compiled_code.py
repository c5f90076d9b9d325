"""Compile kernels for a target, and read the sizes of their code and stack.

kernels ─► merged, guarded ─► objects ─► linked with the compiler's runtime alone ─► bytes of code
                                 └─► frames of functions, as LLVM notes them ─► bytes of stack
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..codegen import symbol
from ..codegen.bare.float_functions import SOURCE, calls_float_functions
from ..codegen.bare.stack_sizes import stack_sizes
from ..codegen.elf import SHF_ALLOC, SHF_WRITE, ElfObject, ElfSection, read_object, sections_of
from ..codegen.library import compile_flags
from ..codegen.symbols import check_symbols, unused_sections
from ..support.temporary_folder import scratch_folder
from ..targets import Target, zig_cc, zig_link

if TYPE_CHECKING:
    from ..kernels.lower.lower import Lowered

#: bytes of the library's own functions, and of a call in `run`, by architecture: measured without an operating system;
#: elsewhere with it, which position-independent addresses make longer
_OWN, _CALL = {"thumb": 124, "riscv32": 108}, {"thumb": 31, "riscv32": 43}
_OWN_ELSEWHERE, _CALL_ELSEWHERE = 480, 45
#: bytes of pointers in .data, which are in flash too
POINTERS = 8
#: bytes of stack of `run`, of the functions that copy memory, and of the runtime's arithmetic by architecture: measured
_RUN, _COPY, _ARITHMETIC = 24, 24, {"thumb": 96, "riscv32": 32}
_COPIES = ("mem", "__aeabi_mem")
_PREFIX = "fit"
#: the object of all kernels: one run of the compiler takes half the time of one a kernel
_OBJECT = "kernels.o"
#: tables to unwind the stack, which no library has
_TABLES = (".ARM.exidx", ".eh_frame")


@dataclass(frozen=True)
class CompiledCode:
    """Bytes of code of a library, and of stack of a run; with an operating system the stack is not predicted: 0."""

    nbytes: int
    stack: int


def compile_code(lowered: Lowered, target: Target) -> CompiledCode:
    """Compile the kernels of a lowered, scheduled program. Raises ModelError, ToolchainError, OutputError."""
    from ..codegen.checks.guard_kernels import guard_kernels
    from ..codegen.functions.merge_kernels import merge_identical_kernels
    from ..codegen.objects import build_object

    lowered, _ = guard_kernels(merge_identical_kernels(lowered), target.index_checks)
    calls = sum(1 for _ in lowered.program.calls())
    if not target.bare:
        with scratch_folder() as folder:
            build_object(lowered.kernels, target, folder / _OBJECT)
            own = _read_only(read_object((folder / _OBJECT).read_bytes()))
        return CompiledCode(own + _OWN_ELSEWHERE + _CALL_ELSEWHERE * calls, 0)
    kernels = {symbol(_PREFIX, name): kernel for name, kernel in lowered.kernels.items()}
    with scratch_folder() as folder:
        build_object(kernels, target, folder / _OBJECT)
        content = (folder / _OBJECT).read_bytes()
        found = read_object(content)
        check_symbols(found, target)
        code = _link(list(kernels), found, target, folder) if kernels else 0
        frame = max(stack_sizes(content), default=0)
    stack = _RUN + frame + _below(found.undefined, target)
    return CompiledCode(code + _OWN[target.architecture] + _CALL[target.architecture] * calls + POINTERS, stack)


def _below(called: Sequence[str], target: Target) -> int:
    """Return the bytes of stack of the functions that kernels call."""
    if not all(each.startswith(_COPIES) for each in called):
        return _ARITHMETIC[target.architecture]
    return _COPY if called else 0


def _link(roots: Sequence[str], found: ElfObject, target: Target, folder: Path) -> int:
    """Link kernels with the functions they call; return the bytes of text and read-only data."""
    files = [_OBJECT]
    if calls_float_functions(found.undefined):
        zig_cc([*compile_flags(target), "-c", str(SOURCE), "-o", "float_functions.o"], target, folder)
        files.append("float_functions.o")
    kept = [f"-Wl,-u,{root}" for root in roots]
    zig_link(
        ["-nostdlib", "-static", "-Wl,--gc-sections", f"-Wl,-e,{roots[0]}", *kept, *files, "-o", "kernels.elf"],
        target,
        folder,
    )
    return _bytes_of(sections_of((folder / "kernels.elf").read_bytes()))


def _read_only(found: ElfObject) -> int:
    (dropped,) = unused_sections([found])
    return _bytes_of(each for each in found.sections if each.name not in dropped)


def _bytes_of(sections: Iterable[ElfSection]) -> int:
    """Count the bytes of text and read-only data."""
    kept = (
        each
        for each in sections
        if each.flags & SHF_ALLOC and not each.flags & SHF_WRITE and not each.name.startswith(_TABLES)
    )
    return sum(each.size for each in kept)
