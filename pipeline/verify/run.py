"""Link a library into a program, run it, compare its outputs, measure memory and time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from ..codegen.library import Library
from ..errors import NumericError, PassfitError
from ..memory.footprint import Measured
from ..memory.measured import NOT_VERIFIED, Energy, ErrorDistances
from ..program import Program
from ..support.strictness import spare
from ..support.temporary_folder import scratch_folder
from ..targets import Target
from .compare import Case, Difference, Tensors, compare, farthest
from .golden import keep_golden
from .integers.given_outputs import GivenOutputs
from .linked.program import LibraryFailure
from .measure.board_time import counting, estimate_time
from .measure.energy import Counter, energy_of, rapl_counters
from .measure.instructions import instructions
from .runner import Linked, LinkedImage, link

#: native: enough runs for a median; emulated: the cases alone, as an emulator's time says little about the device
_NATIVE_REPEATS, _NATIVE_SECONDS, _EMULATED_REPEATS = 10, 0.3, 0


def verify_library(
    library: Library,
    program: Program,
    cases: Callable[[], Sequence[Case]],
    target: Target,
    tolerance: float,
    second_look: Callable[[Sequence[Case]], Sequence[Case]] = lambda cases: cases,
    given: Callable[[], GivenOutputs | None] = lambda: None,
    whole_image: bool = False,
) -> Measured:
    """Run `library` on `cases`, natively or under the target's emulator, and compare the outputs.

    `second_look` adds outputs to them if the library seems wrong (see
    `cases.add_plain_sums`). `given` returns the outputs of a quantised model as given, to compare with too. The program is linked even
    if it cannot run: that proves the library complete. Memory and time are measured natively only, as an emulator's say
    little about the device. `ram` is the anonymous memory, in bytes, gained over a twin of the program that never calls
    the library, or that of the image; the stack is measured separately.

    Golden vectors are written next to the library: see `golden.py`. So are start-up and linker script of a board, and all of its
    image, if asked for.
    Raises NumericError if outputs differ or the library fails, ToolchainError if it cannot be built or started.
    """
    with scratch_folder() as folder:
        linked = link(library, program, target, folder)
        if isinstance(linked, LinkedImage):
            linked.copy_image(library.archive.parent, whole_image)
        runner, image = linked.runner, linked.image.sizes if isinstance(linked, LinkedImage) else None
        flash, regions = (None, ()) if image is None else (image.flash, image.regions(target.memories))
        if runner.command is None:
            seeded = [case for case in cases() if not case.name]
            keep_golden(library.archive.parent, program, seeded, runner.how, None, tolerance)
            return Measured(
                ran=False, how=runner.how, ram=None if image is None else image.ram, flash=flash, regions=regions
            )
        chosen = cases()
        repeats = _NATIVE_REPEATS if runner.native else _EMULATED_REPEATS
        counters, why_none = rapl_counters() if runner.native else ((), "")
        files = [counter.file for counter in counters]
        as_given = given()
        more = () if as_given is None else as_given.inputs
        ended = threading.Event()
        with ThreadPoolExecutor(1) as thread, ExitStack() as leaving:
            leaving.callback(ended.set)  # if the cases fail, the count ends too
            counted = None
            if not (runner.native or target.bare):
                counted = thread.submit(instructions, linked.copied("counted"), chosen[0].inputs, ended=ended)
            inputs = [*(case.inputs for case in chosen), *more]
            report, results = _run(linked, inputs, repeats, files)
            count = report.get("instructions")
            if counted is not None:
                count = spare("the count of instructions", counted.result, lambda why: None)
            estimated = None
            if isinstance(linked, LinkedImage) and count is not None:
                estimated = spare(
                    "the estimate of time", partial(estimate_time, linked, len(inputs), count), lambda why: None
                )
        outputs, further = results[: len(chosen)], results[len(chosen) :]
        twin = linked.run([])[0] if runner.native else report
    ram = _ram(report, twin, library, target) if runner.native else None
    uncompared: list[str] = []
    compared = partial(_compare, outputs, chosen, tolerance, second_look)
    try:
        difference = spare("the comparison of outputs", compared, uncompared.append, but=NumericError)
    except NumericError as error:
        if not runner.native:
            error.suspect(f"the device and {runner.how}" if target.runner else f"the emulator, {runner.how},")
        raise
    seeded = [case for case in chosen if not case.name]  # the user's samples stay theirs
    golden = partial(
        keep_golden, library.archive.parent, program, seeded, runner.how, outputs[: len(seeded)], tolerance
    )
    spare("golden.json", golden, lambda why: None, but=PassfitError)
    agreement = as_given.agreement(further) if as_given is not None and not as_given.unknown else None
    unknown = uncompared or ([as_given.unknown] if as_given is not None and as_given.unknown else [])
    return Measured(
        ran=True,
        how=runner.how,
        ram=ram if image is None else image.ram,
        flash=flash,
        regions=regions,
        stack=report.get("stack"),
        page=report["page"] if runner.native else None,
        latency_ms=report["median_ns"] / 1e6 if runner.native else None,
        throughput=report["runs"] * 1e9 / max(1, report["total_ns"]) if runner.native else None,
        energy=_energy(counters, report, why_none) if runner.native else None,
        max_abs_error=None if difference is None else difference.absolute,
        max_rel_error=None if difference is None else difference.relative,
        instructions=count,
        cycles=report.get("cycles"),
        estimated=estimated,
        error=None if difference is None else _error(difference, chosen),
        reordered=None if difference is None else difference.reordered,
        samples=len(chosen) - len(seeded) or None,
        given=agreement,
        verified_by=f"{NOT_VERIFIED}: {unknown[0]}" if unknown else chosen[0].reference,
    )


def _run(linked: Linked, inputs: list[Tensors], repeats: int, counters: list[Path]) -> tuple[dict, list[Tensors]]:
    """Run the cases; an image by an emulator that counts, if that works."""
    if isinstance(linked, LinkedImage) and (counted := counting(linked)) is not linked:
        try:
            return counted.run(inputs)
        except LibraryFailure:
            raise
        except PassfitError:
            pass  # of the plugin; any other comes again
    return linked.run(inputs, repeats, _NATIVE_SECONDS, counters)


def _compare(
    outputs: list, cases: Sequence[Case], tolerance: float, second_look: Callable[[Sequence[Case]], Sequence[Case]]
) -> Difference | None:
    """Compare the outputs with the reference's; None without a reference. The user's samples do not widen the bound of others."""
    if not cases[0].expected:
        return None
    count = sum(not case.name for case in cases)
    groups = [(outputs[:count], cases[:count]), (outputs[count:], cases[count:])]
    return farthest([_compare_alike(*group, tolerance, second_look) for group in groups if group[1]])


def _compare_alike(
    outputs: list, cases: Sequence[Case], tolerance: float, second_look: Callable[[Sequence[Case]], Sequence[Case]]
) -> Difference:
    try:
        return compare(outputs, list(cases), tolerance)
    except NumericError:  # raised again unless the order of sums explains the difference
        looked = spare("a second look at the outputs", partial(second_look, cases), lambda why: cases)
        return compare(outputs, looked, tolerance)


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
