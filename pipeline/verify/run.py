"""Build the library into a program, run it here, compare its outputs with ONNX Runtime, measure memory and time."""

from __future__ import annotations

import json
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..codegen.library import COMPILE_FLAGS, Library
from ..codegen.template import render
from ..errors import ConfigError, ModelError, NumericError, ToolchainError
from ..graph import Port, Program
from ..memory.footprint import Measured
from ..targets import Runner, Target, how_to_run, zig_cc
from .cases import choose_cases
from .compare import compare

if TYPE_CHECKING:
    import onnx

#: native: enough runs for a median; emulated: the cases alone, since their time says little about the device
_NATIVE_REPEATS, _NATIVE_SECONDS, _EMULATED_REPEATS = 10, 0.3, 0
_TIMEOUT_SECONDS = 3600


def verify_library(
    library: Library,
    program: Program,
    model: onnx.ModelProto,
    target: Target,
    *,
    seed: int = 0,
    cases: int = 3,
    tolerance: float = 1e-4,
) -> Measured:
    """Runs `library` on `cases` seeded inputs, natively or under the target's emulator.

    `model` is the ONNX model `program` was lowered from. The program is linked even where it cannot be run, which
    shows that the library is complete. `ram` is the anonymous memory it gained over an empty process, in bytes, and
    is measured natively only. Raises NumericError when outputs differ or the library fails, ToolchainError when it
    cannot be built or started.
    """
    if cases < 1:
        raise ConfigError(f"verify: cases is {cases}.", "Give at least 1.")
    runner = how_to_run(target)
    with tempfile.TemporaryDirectory(prefix="passfit-verify-") as name:
        folder = Path(name)
        _build(library, program, target, folder)
        if runner.command is None:
            return Measured(ran=False, how=runner.how)
        chosen = choose_cases(model, seed, cases, tolerance)
        report, outputs = _execute(library, program, runner, [case.inputs for case in chosen], folder)
    difference = compare(outputs, chosen, tolerance)
    return Measured(
        ran=True,
        how=runner.how,
        ram=_ram(report, library, target) if runner.native else None,
        latency_ms=report["median_ns"] / 1e6,
        max_abs_error=difference.absolute,
        max_rel_error=difference.relative,
    )


def _ram(report: dict, library: Library, target: Target) -> int | None:
    """Anonymous bytes gained. Weights that the target copies to RAM are file-backed in this process: they add up."""
    if min(report["before_kib"], report["after_kib"]) < 0:
        return None
    copied = library.weight_bytes if target.weights == "copied" else 0
    return (report["after_kib"] - report["before_kib"]) * 1024 + copied


def _build(library: Library, program: Program, target: Target, folder: Path) -> None:
    """Links runner.c with the archive, statically, into `folder`/runner."""
    for file in (library.archive, library.header):
        (folder / file.name).write_bytes(file.read_bytes())
    sizes = {
        "input_bytes": [program.tensors[port.tensor].nbytes for port in program.inputs],
        "output_bytes": [program.tensors[port.tensor].nbytes for port in program.outputs],
    }
    text = render("runner.c.j2", Path(__file__).parent, m=library.name, M=library.name.upper(), **sizes)
    (folder / "runner.c").write_text(text, encoding="utf-8")
    flags = [flag for flag in COMPILE_FLAGS if flag not in ("-std=c11", "-fvisibility=hidden", "-fPIC")]
    sources = ["runner.c", library.archive.name, "-lm"]
    zig_cc([*flags, "-std=gnu11", "-static", *sources, "-Wl,--gc-sections", "-o", "runner"], target, folder)


def _execute(
    library: Library, program: Program, runner: Runner, inputs: list[dict[str, np.ndarray]], folder: Path
) -> tuple[dict, list[dict[str, np.ndarray]]]:
    """The runner's report, and the outputs of each case by name."""
    with (folder / "inputs.bin").open("wb") as file:
        for case in inputs:
            for port in program.inputs:
                file.write(_checked(case, port, program).tobytes())
    repeats = _NATIVE_REPEATS if runner.native else _EMULATED_REPEATS
    nanoseconds = int(_NATIVE_SECONDS * 1e9)
    arguments = ["inputs.bin", "outputs.bin", str(len(inputs)), str(repeats), str(nanoseconds)]
    where = f"The library of '{library.name}', run by {runner.how},"
    try:
        done = subprocess.run(
            [*(runner.command or []), str(folder / "runner"), *arguments],
            cwd=folder, capture_output=True, text=True, errors="replace", timeout=_TIMEOUT_SECONDS,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise ToolchainError(
            f"{where} did not finish in {_TIMEOUT_SECONDS} s.", "Try a smaller input shape."
        ) from error
    except OSError as error:
        raise ToolchainError(f"{where} cannot be started: {error.strerror}.", "Check the emulator.") from error
    if done.returncode < 0:
        raise NumericError(
            f"{where} crashed with {signal.Signals(-done.returncode).name}.", "Please report this model."
        )
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise NumericError(f"{where} failed: {last}")
    return json.loads(done.stdout), _outputs(folder / "outputs.bin", program, len(inputs))


def _checked(case: dict[str, np.ndarray], port: Port, program: Program) -> np.ndarray:
    """The case's value for `port`. The program and the model must agree on it."""
    tensor = program.tensors[port.tensor]
    value = case.get(port.name)
    if value is None or value.shape != tensor.shape or value.nbytes != tensor.nbytes:
        raise ModelError(f"Input '{port.name}' of the library is not an input of the model.", "Import the model again.")
    return value


def _outputs(path: Path, program: Program, cases: int) -> list[dict[str, np.ndarray]]:
    found = []
    with path.open("rb") as file:
        for _ in range(cases):
            found.append({port.name: _read(file.read, program, port) for port in program.outputs})
    return found


def _read(read, program: Program, port: Port) -> np.ndarray:
    tensor = program.tensors[port.tensor]
    return np.frombuffer(read(tensor.nbytes), dtype=numpy_dtype(tensor.dtype)).reshape(tensor.shape)


def numpy_dtype(name: str) -> np.dtype:
    """The numpy dtype of a program's dtype; bfloat16 is the one numpy lacks."""
    if name == "bfloat16":
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(name)
