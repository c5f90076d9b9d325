"""Run programs with each tensor between pages that nobody may touch, each run in a process of its own.

    ┃ forbidden ┃ … unused, buffer ┃ forbidden ┃           or, to see accesses before a buffer,  ┃ buffer, unused … ┃

An access outside of a buffer, by more than the bytes up to its alignment, ends the process with a signal. Sanitizers do not
see into kernels: LLVM makes them without the instrumentation of a C compiler.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from passfit.codegen import symbol
from passfit.codegen.checks.guard_kernels import guard_kernels
from passfit.codegen.elf import read_object
from passfit.codegen.objects import build_object
from passfit.codegen.symbols import uses_workspace
from passfit.kernels.lower.lower import Lowered
from passfit.program import Loop, Program
from passfit.targets import Target, host_libc, zig_link
from passfit.verify.runner import numpy_dtype


@dataclass(frozen=True)
class End:
    """How a run ended: with outputs, refused by a kernel, by a signal, or with values from memory of others."""

    outputs: dict[str, np.ndarray] | None = None
    refused: bool = False
    signal: int = 0
    foreign: bool = False


class GuardedPrograms:
    """Kernels of several programs in one shared object, checked as the target says."""

    def __init__(self, programs: Mapping[str, Lowered], target: Target, folder: Path) -> None:
        self._programs = programs
        self._unchecked = target.index_checks == "off"
        self._library = folder / "kernels.so"
        kernels = {}
        for name, lowered in programs.items():
            guarded, _ = guard_kernels(lowered, target.index_checks)
            kernels |= {symbol(name, kernel): function for kernel, function in guarded.kernels.items()}
        build_object(kernels, target, folder / "kernels.o")
        assert not uses_workspace(read_object((folder / "kernels.o").read_bytes()))
        zig_link(["-shared", "kernels.o", "-lm", "-o", "kernels.so"], target, folder, zig_target=host_libc(target))

    def run(self, cases: Sequence[tuple[str, Mapping[str, np.ndarray]]]) -> list[End]:
        """Run each case, a program and its inputs, at both sides of its pages; they have to agree if kernels check."""
        request = {
            "library": str(self._library),
            "programs": {name: _plain(name, lowered) for name, lowered in self._programs.items()},
            "cases": [
                (name, {port: np.ascontiguousarray(each).tobytes() for port, each in inputs.items()})
                for name, inputs in cases
            ],
        }
        driver = Path(__file__).with_name("guarded_driver.py")
        done = subprocess.run(
            [sys.executable, "-I", str(driver)],
            input=pickle.dumps(request),
            capture_output=True,
            check=True,
            timeout=600,
        )
        return [self._end(name, *pair) for (name, _), pair in zip(cases, pickle.loads(done.stdout), strict=True)]

    def _end(self, name: str, low: tuple, high: tuple) -> End:
        worse = max((low, high), key=lambda each: ("outputs", "refused", "signal").index(each[0]))
        if worse[0] == "signal":
            return End(signal=worse[1])
        if self._unchecked and low != high:
            return End(foreign=True)  # an index so wild that it reaches past the forbidden pages
        assert low == high, name
        if worse[0] == "refused":
            return End(refused=True)
        program = self._programs[name].program
        tensors = [(port.name, program.tensors[port.tensor]) for port in program.outputs]
        return End(
            {
                port: np.frombuffer(each, numpy_dtype(t.dtype)).reshape(t.shape)
                for (port, t), each in zip(tensors, worse[1])
            }
        )


def _plain(name: str, lowered: Lowered) -> dict:
    """Return a program as plain data, for a process that imports no more than it needs: loops as the calls of all trips."""
    program = lowered.program
    tensors = [(each.buffer, each.weight, each.offset, each.nbytes) for each in program.tensors]
    steps: list[tuple[str, tuple[int, ...]]] = []

    def add(within: Program, places: Sequence[int], trip: int) -> None:
        for step in within.steps:
            if not step.runs_in(trip):
                continue
            if isinstance(step, Loop):
                for each in range(step.trips):
                    add(step.body, in_trip(step, places, each), each)
            else:
                steps.append((symbol(name, step.kernel), tuple(places[each] for each in (*step.reads, *step.writes))))

    def in_trip(loop: Loop, places: Sequence[int], trip: int) -> list[int]:
        """Add the tensors of a body in one trip; return their numbers."""
        around = [tensors[places[each]] for each in (*loop.reads, *loop.results)]
        windows = {window.tensor: window for window in loop.windows}
        found = []
        for number, each in enumerate(loop.body.tensors):
            window = windows.get(number)
            if window is not None:
                buffer, weight, start, _ = around[window.place]
                start += window.offset + trip * window.stride
            elif each.buffer is None:
                buffer, weight, start = None, each.weight, 0
            else:
                room = tensors[places[loop.workspace_of(each.buffer)]]
                buffer, weight, start = room[0], None, room[2] + loop.offsets[each.buffer] + each.offset
            found.append(len(tensors))
            tensors.append((buffer, weight, start, each.nbytes))
        return found

    add(program, range(len(tensors)), 0)
    return {
        "steps": steps,
        "tensors": tensors,
        "buffers": [each.nbytes for each in program.buffers],
        "weights": [np.ascontiguousarray(each).tobytes() for each in lowered.weights],
        "inputs": {port.name: port.tensor for port in program.inputs},
        "outputs": [port.tensor for port in program.outputs],
    }
