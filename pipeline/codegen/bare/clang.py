"""Compile kernels for a device without an operating system by the C toolchain, from LLVM's code as text.

    kernels ─► TVM, level 0 ─► k.ll ─► functions marked `nounwind`, those of assembly defined ─► clang ─► k.o

TVM cannot say that functions raise no exceptions: objects for 32-bit Arm then have tables to unwind the stack, and refer to
their reader in libgcc. It also makes code position-independent, which loads each address from a table. TVM and the
toolchain hold the same version of LLVM, 22.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from ...targets import Target, zig_cc
from .arm_dsp import add_definitions
from .helium import choose_vectors

if TYPE_CHECKING:
    import tvm

#: attributes of the module's own functions, not those of LLVM's
_ATTRIBUTES = re.compile(r'^(attributes #\d+ = \{)(?= .*"target-cpu")', re.MULTILINE)
_FLAGS = (
    "-g0",
    "-fno-sanitize=all",
    "-fno-pic",
    "-ffunction-sections",
    "-fdata-sections",
    "-fstack-size-section",
    "-Wno-override-module",
)


def compile_by_clang(module: tvm.runtime.Module, target: Target, path: Path, kind: str = "-c") -> None:
    """Write the object of a module of TVM, built at level 0, to `path`; its level is that of `opt`. Raises ToolchainError.

    With `-S` as `kind` it is assembly.
    """
    source = path.with_suffix(".ll")
    code = _ATTRIBUTES.sub(r"\1 nounwind", module.inspect_source("ll"))
    source.write_text(choose_vectors(add_definitions(code)), encoding="utf-8")
    zig_cc([*_FLAGS, f"-O{target.llvm_config()['opt-level']}", kind, source.name, "-o", path.name], target, path.parent)
