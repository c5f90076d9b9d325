"""Time compiled libraries beside ONNX Runtime: one thread each, turn by turn, in one process."""

from __future__ import annotations

import ctypes
import json
import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import onnxruntime
from models import Model

from passfit import api
from passfit.frontend.source.import_options import ImportOptions

#: turns of each, seconds of a turn, least and most runs of a turn
TURNS, SECONDS, LEAST, MOST = 5, 0.5, 3, 2000


def beside_onnxruntime(model: Model, folders: Mapping[str, Path], least: bool = False) -> dict[str, list[float]]:
    """Time the library in each folder of results, by name, and ONNX Runtime on the same model.

    Returns the median of every turn, in milliseconds, or with `least` the processor time of its shortest run: other work
    adds little to that. ONNX Runtime's inputs and outputs are bound, as a library's lie in its arena. It is timed on the file as shipped and on the imported model, under "shipped" and "imported"; one that
    it refuses is left out. Raises RuntimeError if a library fails, or if ONNX Runtime refuses both.
    """
    libraries = {name: library_run(folder) for name, folder in folders.items()}
    figures = {"choose": min, "clock": time.thread_time_ns} if least else {}
    return turn_by_turn({**_sessions(model, next(iter(folders.values()))), **libraries}, **figures)


def turn_by_turn(
    runs: Mapping[str, Callable[[], object]],
    seconds: float | None = None,
    choose: Callable[[list[int]], float] = statistics.median,
    clock: Callable[[], int] = time.perf_counter_ns,
) -> dict[str, list[float]]:
    """Return the milliseconds of each run in each of TURNS turns, of `seconds` each; by default SECONDS, and their median."""
    for run in runs.values():
        run()
    found: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(TURNS):
        for name, run in runs.items():
            found[name].append(round(choose(_times(run, seconds or SECONDS, clock)) / 1e6, 6))
    return found


def fastest(turns: Mapping[str, list[float]]) -> float:
    """Return the milliseconds of ONNX Runtime: its better model, in its best turn."""
    return min(min(turns[name]) for name in ("shipped", "imported") if name in turns)


def _times(run: Callable[[], object], seconds: float, clock: Callable[[], int]) -> list[int]:
    """Return the nanoseconds of each run in a turn."""
    times: list[int] = []
    end = time.perf_counter() + seconds
    while len(times) < LEAST or (len(times) < MOST and time.perf_counter() < end):
        started = clock()
        run()
        times.append(clock() - started)
    return times


def library_run(folder: Path) -> Callable[[], object]:
    """Load the shared object of `folder`, fill its inputs, and return its run."""
    io = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["io"]
    library = ctypes.CDLL(str(folder / f"lib{io['name']}.so"))
    place, run = getattr(library, f"{io['name']}_input"), getattr(library, f"{io['name']}_run")
    place.restype = ctypes.c_void_p
    values = [made(port["name"], tuple(port["shape"]), port["dtype"]) for port in io["inputs"]]

    def filled() -> None:
        # an input's memory may hold other tensors after its last reader
        for number, value in enumerate(values):
            ctypes.memmove(place(number), value.ctypes.data, value.nbytes)
        if run():
            raise RuntimeError("the library failed on the inputs of the benchmark")

    return filled


def _sessions(model: Model, folder: Path) -> dict[str, Callable[[], object]]:
    """Return the runs of ONNX Runtime, optimised, on the file as shipped and on the imported model."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    io = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["io"]
    values = {port["name"]: made(port["name"], tuple(port["shape"]), port["dtype"]) for port in io["inputs"]}
    imported = api.import_onnx(model.file(), ImportOptions(model.shapes, model.fix))[0].SerializeToString()
    runs: dict[str, Callable[[], object]] = {}
    refused = ""
    for name, source in (("shipped", str(model.file())), ("imported", imported)):
        try:
            session = onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
            binding = session.io_binding()
            for port in session.get_inputs():
                dtype = np.int64 if "int64" in port.type else np.int32 if "int32" in port.type else np.float32
                value = values[port.name] if port.name in values else np.asarray(model.fix[port.name], dtype)
                binding.bind_cpu_input(port.name, value)
            for port in session.get_outputs():
                binding.bind_output(port.name)
            session.run_with_iobinding(binding)
        except Exception as error:  # a refusal of ONNX Runtime has no class of its own
            refused = f"ONNX Runtime refuses the model: {str(error).splitlines()[0]}"
            continue

        def run(session=session, binding=binding) -> None:
            session.run_with_iobinding(binding)

        runs[name] = run
    if not runs:
        raise RuntimeError(refused)
    return runs


def made(name: str, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Make the input `name`: standard normal floats, zeros of other dtypes, which are valid indices."""
    values = np.zeros(shape, dtype)
    if values.dtype.kind == "f":
        seed = [len(name), *name.encode()]
        values = np.random.default_rng(seed).standard_normal(shape).astype(dtype)
    return np.ascontiguousarray(values).reshape(shape)
