"""Write kernels as assembly, for compilers other than the library's own."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from tvm.tirx import PrimFunc

from ...targets import Target
from ..bare.clang import compile_by_clang
from ..llvm_pipelines import RAW
from ..objects import build_module

_SECTION = re.compile(r"\s+\.(section|text|data|bss)\b\s*\"?(?P<name>[^\s,\"]*)")
#: sections that a library drops, and lines: places in sources, tables to unwind the stack, comments, and the names of cpus and
#: extensions, which assemblers take from their options, and not all of which older ones know
_DROPPED_SECTIONS = re.compile(r"\.(debug|stack_sizes|llvm_addrsig|comment|note)")
_DROPPED = re.compile(
    r"\s*(\.(loc|file|ident|addrsig|cfi_\w+|fnstart|fnend|cantunwind|save|vsave|pad|setfp|cpu|fpu|arch|arch_extension|attribute\s+5)\b|@|#|//).*"
)
#: registers of Helium
_VECTOR = re.compile(r"^\tv\w+(\.\w+)*\tq\d", re.MULTILINE)


def assemble(kernels: Mapping[str, PrimFunc], target: Target, folder: Path) -> str:
    """Return the assembly of all kernels, as their objects have it; `folder` is scratch. Raises ToolchainError."""
    if not target.bare:
        text = build_module(kernels, target.llvm_config(), RAW).inspect_source("s")
    else:
        path = folder / "kernels.S"
        compile_by_clang(build_module(kernels, target.llvm_config() | {"opt-level": 0}, RAW), target, path, "-S")
        text = path.read_text(encoding="latin-1")  # numbers of debug information are bytes
    stack = "" if target.bare else '\t.section\t.note.GNU-stack,"",%progbits\n'  # not a segment on a bare target
    # vectors are not among the options, which are those of functions without
    vectors = "\t.arch_extension\tmve.fp\n" if target.machine.vmlava and _VECTOR.search(text) else ""
    return vectors + "\n".join(_kept(text)) + "\n" + stack


def _kept(assembly: str) -> Iterator[str]:
    """Yield the assembly lines of kept sections."""
    dropping = False
    for line in assembly.splitlines():
        if section := _SECTION.match(line):
            dropping = bool(_DROPPED_SECTIONS.match(section["name"]))
        if not dropping and not _DROPPED.fullmatch(line):
            yield line
