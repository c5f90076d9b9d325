"""Link a shared library for this host in one call of the compiler: neither archive nor header is delivered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..targets import Target, host_libc, zig_link
from .elf import read_object, together
from .functions.merge_kernels import merge_identical_kernels
from .library import library_values
from .names import c_identifier, symbol
from .objects import build_objects
from .source.files import write_sources
from .symbols import check_symbols
from .tensor_addresses import tensor_addresses

if TYPE_CHECKING:
    from ..kernels.lower.lower import Lowered
    from ..memory import ArenaPlan


def link_quickly(lowered: Lowered, plan: ArenaPlan, workspace: int, target: Target, folder: Path) -> Path:
    """Build the shared library of a lowered program in `folder`; return its path.

    Kernels, plan and C source are those of `write_library`, at a third of its processor time: the C compiler spares its
    optimisations, and tables to unwind the stack stay. Raises ModelError, ToolchainError.
    """
    from .checks.guard_kernels import guard_kernels

    lowered, reasons = guard_kernels(merge_identical_kernels(lowered), target.index_checks)
    prefix = c_identifier(lowered.program.name)
    objects = build_objects({symbol(prefix, name): each for name, each in lowered.kernels.items()}, target, folder)
    return link_objects(lowered, plan, workspace, objects, target, folder, reasons)


def link_objects(
    lowered: Lowered,
    plan: ArenaPlan,
    workspace: int,
    objects: Sequence[Path],
    target: Target,
    folder: Path,
    reasons: Mapping[str, tuple[str, ...]] | None = None,
    timed: bool = False,
) -> Path:
    """Link a program whose kernels are compiled already, and may fail for `reasons`; see `link_quickly`.

    `timed` as in `write_library`.
    """
    prefix, program = c_identifier(lowered.program.name), lowered.program
    kernels = together([read_object(path.read_bytes()) for path in objects])
    check_symbols(kernels, target)
    addresses = tensor_addresses(program, plan)
    values = library_values(program.name, program, plan, workspace, addresses, kernels, target, reasons)
    values["timed"] = timed
    sources = write_sources(folder, values, lowered.weights, addresses)
    # bound within: the process may hold TVM itself, whose pointers have the names of the kernels' own
    options = [
        "-std=c11",
        "-O0",
        "-fPIC",
        "-fno-sanitize=all",
        "-fno-stack-protector",
        "-shared",
        "-Wl,-Bsymbolic",
        "-Wl,-z,defs",
    ]
    members = [
        *sources,
        *(str(path.resolve()) for path in objects),
        "-lm",
        *(["-lpthread"] if target.threads > 1 else []),
    ]
    zig_link([*options, *members, "-o", f"{prefix}.so"], target, folder, zig_target=host_libc(target))
    return folder / f"{prefix}.so"
