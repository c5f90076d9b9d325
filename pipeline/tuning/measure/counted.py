"""Count the instructions of a kernel's call, for a target emulated here.

Several schedules are built into one program, which the emulator runs once for each. Fewer instructions mostly take less
time, but a device may differ: loads from far memory count as much as any other instruction.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from tvm.ir import PrimType
from tvm.tirx import PrimFunc

from ...codegen.arithmetic import arithmetic_helpers
from ...codegen.elf import read_object
from ...codegen.objects import build_object
from ...codegen.symbols import check_symbols, uses_workspace
from ...codegen.template import render
from ...errors import ToolchainError
from ...kernels.schedule.candidates import Schedule
from ...kernels.schedule.tuned import ScheduleRequest
from ...memory.liveness import ALIGNMENT, aligned
from ...support.children import run
from ...targets import Target, how_to_run
from ...verify.link_program import link_program
from ...verify.measure.instructions import count_between, log_of
from .harness import GUARD, HOPELESS, UNTOUCHED, Harness
from .operands import Value

_MARK, _MEMORY = "mark", "memory.bin"
_TIMEOUT_SECONDS = 600


class Programs:
    """Programs of kernels for the target's emulator, in a temporary folder of this object.

    Raises ToolchainError if they cannot be built or started.
    """

    def __init__(self, target: Target):
        self._target, self._emulator = target, how_to_run(target).words
        self._scratch = tempfile.TemporaryDirectory(prefix="passfit-")
        self._folder = Path(self._scratch.name)
        #: by id: the schedule, kept so that its id stays unique, its program, and its number there
        self._built: dict[int, tuple[Schedule, str, int]] = {}

    def build(self, schedules: Sequence[Schedule]) -> None:
        """Build all new schedules into one program: linking takes longer than compiling a kernel."""
        new = [each for each in schedules if id(each) not in self._built]
        if not new:
            return
        program = f"kernels{len(self._built)}"
        names = {f"kernel_{number}": each.kernel for number, each in enumerate(new)}
        build_object(names, self._target, self._folder / f"{program}.o")
        kernels = read_object((self._folder / f"{program}.o").read_bytes())
        check_symbols(kernels, self._target)
        text = render(
            "one_kernel.c.j2",
            kernels=[_call(name, kernel) for name, kernel in names.items()],
            operands=max(len(each.kernel.params) for each in new),
            workspace=max(each.workspace for each in new) + ALIGNMENT,
            uses_workspace=uses_workspace(kernels),
            helpers=arithmetic_helpers(kernels, self._target),
        )
        (self._folder / f"{program}.c").write_text(text, encoding="utf-8")
        link_program([f"{program}.c", f"{program}.o"], program, self._target, self._folder)
        self._built |= {id(each): (each, program, number) for number, each in enumerate(new)}

    def count(self, schedule: Schedule, memory: EmulatedMemory, limit: float) -> int | None:
        """Count the instructions of a call; None if it fails, or exceeds `limit` or the most countable."""
        with log_of(self._emulator, self._command(schedule, memory), self._folder) as log:
            return count_between(log, _MARK, limit)

    def run(self, schedule: Schedule, memory: EmulatedMemory) -> list[np.ndarray] | None:
        """Return the results of a call; None if it fails or writes anything else."""
        command = [*self._emulator, *self._command(schedule, memory)]
        try:
            done = run(command, cwd=self._folder, capture_output=True, timeout=_TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            return None
        except OSError as error:
            raise ToolchainError(f"{command[0]} cannot be started: {error.strerror}.", "Check the emulator.") from error
        return memory.results((self._folder / _MEMORY).read_bytes()) if done.returncode == 0 else None

    def _command(self, schedule: Schedule, memory: EmulatedMemory) -> list[str]:
        """Write the memory file; return the command to run the schedule on it, without the emulator."""
        self.build([schedule])
        _, program, number = self._built[id(schedule)]
        memory.block.tofile(self._folder / _MEMORY)
        return [str(self._folder / program), str(number), _MEMORY]


def _call(name: str, kernel: PrimFunc) -> dict:
    """Return the prototype of a kernel in C, and its arguments from the operands of one_kernel.c.j2."""
    types = [f"{param.ty.dtype}_t" if isinstance(param.ty, PrimType) else "void *" for param in kernel.params]
    fields = ["pointer" if each == "void *" else "number" for each in types]
    arguments = [f"({kind})operands[{number}].{field}" for number, (kind, field) in enumerate(zip(types, fields))]
    return {"symbol": name, "parameters": types, "arguments": arguments}


class CountingHarness(Harness):
    """Harness that counts the instructions of a call under an emulator."""

    unit = "instructions"
    at_once = 8

    def __init__(self, request: ScheduleRequest, programs: Programs, seed: int):
        super().__init__(request, seed)
        self._programs = programs
        self._counts: dict[int, tuple[Schedule, float]] = {}

    def build(self, schedules: Sequence[Schedule]) -> None:
        self._programs.build(schedules)

    def cost(self, schedule: Schedule, best: float = float("inf")) -> float:
        if id(schedule) not in self._counts:
            memory = EmulatedMemory(self._values(schedule), self.results)
            found = self._programs.count(schedule, memory, best * HOPELESS)
            if found is None:
                return float("inf")
            self._counts[id(schedule)] = schedule, float(found)
        return self._counts[id(schedule)][1]

    def compare(self, one: Schedule, other: Schedule) -> tuple[float, float]:
        return self.cost(one), self.cost(other)

    def _called(self, schedule: Schedule, values: list[Value]) -> list[np.ndarray] | None:
        return self._programs.run(schedule, EmulatedMemory(values, self.results))


class EmulatedMemory:
    """Memory of one call, as read by one_kernel.c.j2: a table, and the operands with guards behind them."""

    def __init__(self, values: list[Value], results: int):
        words = [len(values)]
        self._places: list[tuple[int, np.ndarray]] = []
        end = aligned(8 * (1 + 2 * len(values)))
        for value in values:
            if isinstance(value, int):
                words += [-1, value]
                continue
            words.append(end)
            self._places.append((end, value))
            end = aligned(end + value.nbytes + GUARD)
        self.block = np.full(end, UNTOUCHED, np.uint8)
        self.block[: 8 * len(words)] = np.array(words, "<i8").view(np.uint8)
        for start, value in self._places:
            self.block[start : start + value.nbytes] = np.ascontiguousarray(value).reshape(-1).view(np.uint8)
        self._written = self._places[-results:]

    def results(self, after: bytes) -> list[np.ndarray] | None:
        """Extract the results from the memory after a call; None if anything else was written."""
        block = np.frombuffer(after, np.uint8)
        kept = np.ones(len(block), bool)
        for start, value in self._written:
            kept[start : start + value.nbytes] = False
        if not np.array_equal(block[kept], self.block[kept]):
            return None
        return [
            block[start : start + value.nbytes].view(value.dtype).reshape(value.shape) for start, value in self._written
        ]
