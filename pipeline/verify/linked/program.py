"""Run a program that a library is linked into, natively or under the target's emulator."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

import numpy as np

from ...codegen.library import Library
from ...errors import ModelError, NumericError, PassfitError, ToolchainError
from ...program import Port, Program, Tensor
from ...support.children import run
from ...targets import Runner

#: enough for a few cases, also under an emulator
_TIMEOUT_SECONDS = 600
#: exit code of runner.c for a failure of the library
_STOPPED = 3
#: integers in the program's report: anonymous memory, runs, and times
_REPORTED = ("before_kib", "after_kib", "runs", "min_ns", "median_ns", "total_ns")


class LibraryFailure(NumericError):
    """Failure that the library reports itself, as it will again."""


@dataclass(frozen=True)
class Linked:
    """Library linked into the program `folder`/runner; `runner` tells whether and how it runs here."""

    library: Library
    program: Program
    runner: Runner
    folder: Path

    def run(
        self, inputs: list[dict[str, np.ndarray]], repeats: int = 0, seconds: float = 0.0, counters: Sequence[Path] = ()
    ) -> tuple[dict, list[dict[str, np.ndarray]]]:
        """Run the program; return its report, and the outputs of each case by name.

        It times the cases, or, unless `repeats` is 0, as many runs of the last case, for at most `seconds`; but the cases
        after the first if these take so long. `counters`
        are files of a number each, read before and after the last case has run for `seconds` more. Raises
        NumericError if the library fails, ToolchainError if the program cannot be started.
        """
        command = [*self.command(inputs, repeats, seconds), *map(str, counters)]
        where = f"The library of '{self.library.name}', run by {self.runner.how},"
        return self.report(self.execute(command, where, _TIMEOUT_SECONDS), where), self._outputs(len(inputs), where)

    def execute(self, command: list[str], where: str, seconds: float) -> str:
        """Run the command, for at most so many seconds; return what it prints. Raises NumericError, ToolchainError."""
        try:
            done = run(command, cwd=self.folder, capture_output=True, text=True, errors="replace", timeout=seconds)
        except subprocess.TimeoutExpired as error:
            raise ToolchainError(f"{where} did not finish in {seconds:g} s.", "Try a smaller input shape.") from error
        except OSError as error:
            raise ToolchainError(f"{where} cannot be started: {error.strerror}.", "Check the emulator.") from error
        if done.returncode < 0:
            crashed = f"{where} crashed with {_signal_name(-done.returncode)}"
            last = (done.stderr.strip().splitlines() or [""])[-1]
            if self.runner.command and last.startswith(
                Path(self.runner.command[0]).name
            ):  # QEMU's issue 1441, up to 8.0
                raise NumericError(f"{crashed}, as the emulator failed: {last}", "Install a newer emulator.")
            raise NumericError(f"{crashed}.", "Please report this model.")
        if done.returncode != 0:
            last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
            if self.runner.command and done.returncode != _STOPPED:
                raise self.garbled(f"{where} ended with exit code {done.returncode}: {last[:200]}")
            raise LibraryFailure(f"{where} failed: {last}")
        return done.stdout

    def copied(self, name: str) -> Linked:
        """Copy the program into the subfolder `name`, so that both may run at once."""
        place = self.folder / name
        place.mkdir()
        shutil.copy(self.folder / "runner", place)
        return replace(self, folder=place)

    def report(self, text: str, where: str) -> dict[str, int]:
        """Parse the program's report: a JSON object of integers. Raises ToolchainError, NumericError."""
        try:
            report = json.loads(text)
        except (json.JSONDecodeError, RecursionError):
            report = None
        if not isinstance(report, dict) or any(type(report.get(word)) is not int for word in _REPORTED):
            raise self.garbled(f"{where} printed {text.strip()[:80]!r} instead of its report")
        return report

    def _outputs(self, cases: int, where: str) -> list[dict[str, np.ndarray]]:
        """Read the outputs of each case by name. Raises ToolchainError, NumericError for a wrong file size."""
        ports = [(port.name, self.program.tensors[port.tensor]) for port in self.program.outputs]
        expected = cases * sum(tensor.nbytes for _, tensor in ports)
        file = self.folder / "outputs.bin"
        found = file.stat().st_size if file.is_file() else 0
        if found != expected:
            raise self.garbled(f"{where} wrote {found} bytes of outputs instead of {expected}")
        with file.open("rb") as stream:
            return [{name: _read(stream, tensor) for name, tensor in ports} for _ in range(cases)]

    def garbled(self, what: str) -> PassfitError:
        """Return the error of a garbled result: the emulator's fault if there is one, else a bug of passfit."""
        if self.runner.command:
            return ToolchainError(f"{what}.", f"Check the emulator, {self.runner.command[0]}.")
        return NumericError(f"{what}.", "Please report this model.")

    def command(self, inputs: list[dict[str, np.ndarray]], repeats: int, seconds: float) -> list[str]:
        """Write the inputs to `folder` and return the command to run there.

        With negative `seconds` nothing is timed, written or reported.
        """
        self.write_inputs(inputs)
        arguments = ["inputs.bin", "outputs.bin", str(len(inputs)), str(repeats), str(int(seconds * 1e9))]
        return [*(self.runner.command or []), str(self.folder / "runner"), *arguments]

    def write_inputs(self, inputs: list[dict[str, np.ndarray]], header: bytes = b"") -> None:
        """Write inputs.bin to `folder`: all inputs of all cases, behind a header."""
        with (self.folder / "inputs.bin").open("wb") as file:
            file.write(header)
            for case in inputs:
                for port in self.program.inputs:
                    file.write(_check(case, port, self.program).tobytes())


def _check(case: dict[str, np.ndarray], port: Port, program: Program) -> np.ndarray:
    """Return the case's value for `port`. Raises ModelError if program and model disagree about it."""
    tensor = program.tensors[port.tensor]
    value = case.get(port.name)
    if value is None or value.shape != tensor.shape or value.nbytes != tensor.nbytes:
        raise ModelError(f"Input '{port.name}' of the library is not an input of the model.", "Import the model again.")
    return value


def _read(stream: BinaryIO, tensor: Tensor) -> np.ndarray:
    return np.frombuffer(stream.read(tensor.nbytes), dtype=numpy_dtype(tensor.dtype)).reshape(tensor.shape)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal
        return f"signal {number}"


def numpy_dtype(name: str) -> np.dtype:
    """Return the numpy dtype of a program's dtype; bfloat16 comes from ml_dtypes."""
    if name == "bfloat16":
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(name)
