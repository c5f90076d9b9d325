"""Build the C library of a lowered program."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ..errors import ModelError
from ..support.temporary_folder import scratch_folder
from ..targets import Target

if TYPE_CHECKING:
    from ..kernels.lower.lower import Lowered
    from ..memory import ArenaPlan
    from .library import Library


_GIB = 1 << 30


#: largest arena + workspace + weights in bytes: signed 32-bit offsets address them, and the code itself
STATIC_LIMIT = 2 * _GIB - (64 << 20)


def refuse_large_library(arena: int, workspace: int, weights: int, target: Target) -> None:
    """Raise ModelError for a library with too much static data to address; sizes in bytes."""
    total = arena + workspace + weights
    if total > STATIC_LIMIT:
        parts = {"arena": arena, "workspace": workspace, "weights": weights}
        sizes = ", ".join(f"{word} {size / _GIB:.2f} GiB" for word, size in parts.items() if size > total // 100)
        raise ModelError(
            f"The library would need {total / _GIB:.2f} GiB ({sizes}); programs address {STATIC_LIMIT / _GIB:.2f} GiB, "
            f"and {target.name} has {target.ram / _GIB:.2f} GiB of ram.",
            "Give smaller shapes (--shape), or split the model.",
        )


def check_arguments(lowered: Lowered) -> None:
    """Check that each step's tensors have the shapes and dtypes its kernel was made for: it takes bare pointers.

    Raises ValueError, a bug.
    """
    from ..tir.row_window import tensors_of

    for number, (owner, step, _) in enumerate(lowered.program.calls()):
        params = tensors_of(lowered.kernels[step.kernel])
        expected = [(tuple(map(int, param.ty.shape)), str(param.ty.dtype)) for param in params]
        given = [(owner.tensors[tensor].shape, owner.tensors[tensor].dtype) for tensor in (*step.reads, *step.writes)]
        if given != expected:
            raise ValueError(f"step {number} gives {given} to kernel '{step.kernel}', made for {expected}")


def build_library(
    name: str,
    lowered: Lowered,
    plan: ArenaPlan,
    workspace: int,
    target: Target,
    folder: Path,
    timed: bool = False,
    model_sha256: str = "",
    ports: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
    source: bool = False,
) -> Library:
    """Build the library of a lowered program in `folder`; `workspace` is in bytes, `timed` is for profiles.

    The header states `model_sha256` and `ports`: see `write_library`. `source` keeps C and assembly of the library beside it.
    Kernels are checked as `target.index_checks` says. Raises ModelError, ToolchainError, OutputError.
    """
    from . import c_identifier, symbol, write_library
    from .checks.guard_kernels import guard_kernels
    from .functions.merge_kernels import merge_identical_kernels
    from .objects import build_objects
    from .source.assembly import assemble

    check_arguments(lowered)
    lowered = merge_identical_kernels(lowered)
    lowered, reasons = guard_kernels(lowered, target.index_checks)
    refuse_large_library(plan.arena, workspace, lowered.program.weight_bytes, target)
    prefix = c_identifier(name)
    with scratch_folder() as scratch:
        kernels = {symbol(prefix, kernel): function for kernel, function in lowered.kernels.items()}
        objects = build_objects(kernels, target, scratch)
        return write_library(
            name,
            lowered.program,
            plan,
            workspace,
            lowered.weights,
            objects,
            target,
            folder,
            timed,
            reasons,
            model_sha256,
            ports,
            assemble(kernels, target, scratch) if source else "",
        )
