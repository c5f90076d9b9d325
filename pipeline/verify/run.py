"""Build the library into a program, run it here, compare its outputs with ONNX Runtime, measure memory and time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from ..codegen.library import Library
from ..graph import Program
from ..interrupts import temporary_folder
from ..memory.footprint import Measured
from ..targets import Target
from .cases import Case
from .compare import compare
from .instructions import instructions
from .runner import link

#: native: enough runs for a median; emulated: the cases alone, since their time says little about the device
_NATIVE_REPEATS, _NATIVE_SECONDS, _EMULATED_REPEATS = 10, 0.3, 0


def verify_library(
    library: Library,
    program: Program,
    cases: Callable[[], Sequence[Case]],
    target: Target,
    tolerance: float,
) -> Measured:
    """Runs `library` on `cases`, natively or under the target's emulator.

    `cases` are asked for where the library can be run. The program is linked even where it cannot be run, which
    shows that the library is complete. `ram` is the anonymous memory it gained over an empty process, in bytes, and
    is measured natively only. Raises NumericError when outputs differ or the library fails, ToolchainError when it
    cannot be built or started.
    """
    with temporary_folder("passfit-verify-") as name:
        linked = link(library, program, target, Path(name))
        runner = linked.runner
        if runner.command is None:
            return Measured(ran=False, how=runner.how)
        chosen = cases()
        repeats = _NATIVE_REPEATS if runner.native else _EMULATED_REPEATS
        report, outputs = linked.run([case.inputs for case in chosen], repeats, _NATIVE_SECONDS)
        count = None if runner.native else instructions(linked, chosen[0].inputs)
    difference = compare(outputs, chosen, tolerance)
    return Measured(
        ran=True,
        how=runner.how,
        ram=_ram(report, library, target) if runner.native else None,
        latency_ms=report["median_ns"] / 1e6,
        max_abs_error=difference.absolute,
        max_rel_error=difference.relative,
        instructions=count,
    )


def _ram(report: dict, library: Library, target: Target) -> int | None:
    """Anonymous bytes gained. Weights that the target copies to RAM are file-backed in this process: they add up."""
    if min(report["before_kib"], report["after_kib"]) < 0:
        return None
    copied = library.weight_bytes if target.weights == "copied" else 0
    return (report["after_kib"] - report["before_kib"]) * 1024 + copied
