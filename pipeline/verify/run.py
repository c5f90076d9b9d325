"""Link a library into a program, run it, compare its outputs, measure memory and time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

from ..codegen.library import Library
from ..errors import NumericError
from ..memory.footprint import Energy, ErrorDistances, Measured
from ..program import Program
from ..support.temporary_folder import scratch_folder
from ..targets import Target
from .cases import Case
from .compare import Difference, compare
from .energy import Counter, energy_of, rapl_counters
from .instructions import instructions
from .integers.given_outputs import GivenOutputs
from .runner import link

#: native: enough runs for a median; emulated: the cases alone, as an emulator's time says little about the device
_NATIVE_REPEATS, _NATIVE_SECONDS, _EMULATED_REPEATS = 10, 0.3, 0


def verify_library(
    library: Library,
    program: Program,
    cases: Callable[[], Sequence[Case]],
    target: Target,
    tolerance: float,
    second_look: Callable[[Sequence[Case]], Sequence[Case]] = lambda cases: cases,
    given: GivenOutputs | None = None,
) -> Measured:
    """Run `library` on `cases`, natively or under the target's emulator, and compare the outputs.

    `cases` is called only if the library can run; `second_look` adds outputs to them if the library seems wrong (see
    `cases.with_plain_sums`). `given` are outputs of the model as given, to compare with too. The program is linked even
    if it cannot run: that proves the library complete. Memory and time are measured natively only, as an emulator's say
    little about the device. `ram` is the anonymous memory, in bytes, gained over a twin of the program that never calls
    the library; the stack is measured separately.

    Raises NumericError if outputs differ or the library fails, ToolchainError if it cannot be built or started.
    """
    with scratch_folder() as folder:
        linked = link(library, program, target, folder)
        runner = linked.runner
        if runner.command is None:
            return Measured(ran=False, how=runner.how)
        chosen = cases()
        repeats = _NATIVE_REPEATS if runner.native else _EMULATED_REPEATS
        counters, why_none = rapl_counters() if runner.native else ((), "")
        files = [counter.file for counter in counters]
        more = () if given is None else given.inputs
        ended = threading.Event()
        with ThreadPoolExecutor(1) as aside, ExitStack() as leaving:
            leaving.callback(ended.set)  # if the cases fail, the count ends too
            counted = None
            if not runner.native:
                counted = aside.submit(instructions, linked.copied("counted"), chosen[0].inputs, ended=ended)
            report, results = linked.run([*(case.inputs for case in chosen), *more], repeats, _NATIVE_SECONDS, files)
            count = None if counted is None else counted.result()
        outputs, as_given = results[: len(chosen)], results[len(chosen) :]
        twin = linked.run([])[0] if runner.native else report
    try:
        difference = compare(outputs, chosen, tolerance)
    except NumericError:  # raised again unless the order of sums explains the difference
        difference = compare(outputs, second_look(chosen), tolerance)
    return Measured(
        ran=True,
        how=runner.how,
        ram=_ram(report, twin, library, target) if runner.native else None,
        stack=report["stack"],
        page=report["page"] if runner.native else None,
        latency_ms=report["median_ns"] / 1e6 if runner.native else None,
        throughput=report["runs"] * 1e9 / max(1, report["total_ns"]) if runner.native else None,
        energy=_energy(counters, report, why_none) if runner.native else None,
        max_abs_error=difference.absolute,
        max_rel_error=difference.relative,
        instructions=count,
        error=_error(difference, chosen),
        given=None if given is None else given.agreement(as_given),
    )


def _error(difference: Difference, cases: Sequence[Case]) -> ErrorDistances:
    reasons = [f"onnxruntime: {case.no_double}" for case in cases if case.double is None]
    return ErrorDistances(
        reasons[0] if reasons else "double", difference.library_to_double, difference.onnxruntime_to_double
    )


def _energy(counters: Sequence[Counter], report: dict, why_none: str) -> Energy:
    runs, nanoseconds = report.get("counted_runs", 0), report.get("counted_ns", 0)
    return energy_of(counters, report.get("counters", ()), runs, nanoseconds, why_none)


def _ram(report: dict, twin: dict, library: Library, target: Target) -> int | None:
    """Return the anonymous bytes gained; None if the kernel does not report them.

    Weights are file-backed in this process, so they are added if the target copies them to RAM.
    """
    if min(each[when] for each in (report, twin) for when in ("before_kib", "after_kib")) < 0:
        return None
    copied = library.weight_bytes if target.weights == "copied" else 0
    gained, own = (each["after_kib"] - each["before_kib"] for each in (report, twin))
    return max(0, gained - own) * 1024 + copied
