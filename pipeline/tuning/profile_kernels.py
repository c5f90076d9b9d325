"""Time each kernel inside its library, and compare it with the roofline of this machine.

    kernel                    time      multiply-adds   bytes      roofline: the least time for both, ÷ the time
    k03 conv2d+relu           41.2 µs   1,806,336       251,904    0.71

Caches hold what a run leaves there, unlike for a kernel alone. The clock adds about 30 ns to each kernel.
"""

from __future__ import annotations

import ctypes
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..codegen.build_library import build_library
from ..errors import ConfigError, ModelError, NumericError
from ..memory.validation.checked_plan import checked_plan
from ..support.temporary_folder import scratch_folder
from ..targets import Target, how_to_run
from .measure.peak import Peak, measure_peak

if TYPE_CHECKING:
    from pathlib import Path

    from ..codegen.library import Library
    from ..frontend.imported_model import ImportedModel
    from ..kernels.lower.lower import Lowered
    from ..passes.sequence.sequence import Sequence
    from ..program import Program
    from ..support.progress import Progress
    from .database import AdoptedTuning

#: seconds of runs, and the least number; the shortest time of each kernel counts, since longer ones are disturbed
_SECONDS, _RUNS = 2.0, 5


def profile_kernels(
    imported: ImportedModel,
    sequence: Sequence,
    target: Target,
    progress: Progress,
    tuning: AdoptedTuning | None = None,
) -> dict[str, Any]:
    """Return the content of kernels.json: by step, time in ns, operations, bytes, least time in ns, predicted cycles.

    The library is that of `sequence` with the schedules and the layout of `tuning`, if any.
    Operations are multiply-adds; any other operation on one element is one too. Cycles are those of the model in
    `targets/cycles.py`, which the search takes for time. Raises ModelError for a model without
    kernels, and the errors of building a library.
    """
    from ..passes.sequence.replay import replay
    from .database import AdoptedTuning

    progress("lowering", 0, 0)
    tuned = tuning or AdoptedTuning()
    lowered, workspace = replay(
        sequence, imported.graph, imported.onnx, imported.name, target.machine, tuned.schedules, tuned.layout
    )
    if not lowered.program.steps:
        raise ModelError(f"'{imported.name}' has no kernels: its outputs are inputs or constants.", "Nothing is timed.")
    plan = checked_plan(lowered.program, target)
    with scratch_folder() as folder:
        progress("compiling", 0, 0)
        library = build_library(imported.name, lowered, plan, workspace, target, folder, timed=True)
        progress("running", 0, 0)
        spent = _least_times(library, lowered.program, _values(imported, lowered.program))
        peak = measure_peak(target)
    return {
        "model": imported.name,
        "target": target.name,
        "peak": {
            "multiply_adds_per_s": round(peak.flops / 2),
            "bytes_per_s": {str(size): round(rate) for size, rate in peak.bytes.items()},
        },
        "run_ns": sum(spent),
        "kernels": [_row(lowered, number, ns, peak, target) for number, ns in enumerate(spent)],
    }


def check_native(target: Target) -> None:
    """Raise ConfigError if this machine does not run the target natively."""
    runner = how_to_run(target)
    if not runner.native:
        raise ConfigError(
            f"Kernels for {target.name} cannot be timed on this machine: {runner.how}.",
            "Profile them for a target that runs natively, or let `passfit tune` count their instructions.",
        )


def _row(lowered: Lowered, number: int, ns: int, peak: Peak, target: Target) -> dict[str, Any]:
    from ..targets.cycles import core_of
    from ..tir.counts.operation_counts import near_calls, operations_of_elements, predicted_cycles

    step = lowered.program.steps[number]
    calls = [(lowered.kernels[call.kernel], runs) for _, call, runs in lowered.program.calls_of(step)]
    near = near_calls(replace(lowered.program, steps=(step,)), core_of(target.architecture).second)
    operations = round(sum(operations_of_elements(kernel) * runs for kernel, runs in calls))
    nbytes = sum(lowered.program.tensors[tensor].nbytes for tensor in {*step.reads, *step.results})
    least = peak.seconds(2 * operations, nbytes) * 1e9
    row = {"step": number, "kernel": step.kernel, "nodes": list(step.nodes), "ns": ns}
    cycles = round(sum(predicted_cycles(kernel, target, each) * runs for (kernel, runs), each in zip(calls, near)))
    return row | {"operations": operations, "bytes": nbytes, "least_ns": round(least), "cycles": cycles}


def _values(imported: ImportedModel, program: Program) -> list[np.ndarray]:
    from ..verify.inputs import make_input

    made = make_input(imported.drawn_for, 0, 0)
    return [np.ascontiguousarray(made[port.name]) for port in program.inputs]


def _least_times(library: Library, program: Program, inputs: list[np.ndarray]) -> list[int]:
    """Run a timed library; return the shortest time of each step in ns. Raises NumericError if it fails."""
    run, place, spent = _functions(library.shared, library.name)
    least = np.full(len(program.steps), np.iinfo(np.int64).max)
    done, end = 0, time.monotonic() + _SECONDS
    while done < _RUNS or time.monotonic() < end:
        for number, value in enumerate(inputs):  # an input's memory may hold other tensors after its last reader
            ctypes.memmove(place(number), value.ctypes.data, value.nbytes)
        if run():
            raise NumericError(f"The library of '{library.name}' failed.", "Please report this model.")
        times = np.ctypeslib.as_array(spent(), (len(program.steps),))
        least = np.minimum(least, times)
        done += 1
    return [int(each) for each in least]


def _functions(shared: Path | None, name: str) -> tuple[Any, Any, Any]:
    """Load a timed library; return its functions run, input and spent."""
    loaded = ctypes.CDLL(str(shared))
    run, place, spent = (getattr(loaded, f"{name}_{word}") for word in ("run", "input", "spent"))
    place.restype, spent.restype = ctypes.c_void_p, ctypes.POINTER(ctypes.c_int64)
    return run, place, spent
