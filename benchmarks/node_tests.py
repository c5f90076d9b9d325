"""Compile ONNX's tests of single operators with the default search; write results/node_tests.md, the coverage.

    .venv/bin/python benchmarks/node_tests.py               at most three cases of each operator
    .venv/bin/python benchmarks/node_tests.py --op Conv     of one operator; nothing is written

Each case is compiled in a process of its own, as `passfit compile` does: searched, built, run, compared with ONNX
Runtime. Its library is then run on the inputs of the case, and compared with the outputs ONNX gives. A case ends as
`ok`, `refused` (exit code 2 of the command line), `wrong` (the outputs are not ONNX's), `crash` or `time-out`. Results
are kept by commit, machine and versions: an interrupted run goes on.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import multiprocessing
import os
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.connection import wait
from pathlib import Path

import numpy as np
import onnx
from head import begin
from onnx import numpy_helper

from passfit import api
from passfit.errors import NumericError, PassfitError
from passfit.memory import read_plan
from passfit.search.settings import SearchSettings
from passfit.targets import Target, get_target
from passfit.verify.runner import numpy_dtype

RESULTS = Path(__file__).parent / "results"
OUTCOMES = ("ok", "refused", "wrong", "crash", "time-out")
#: seconds until a case is given up
TIMEOUT = 240
#: allowed difference, relative to the range of an output
TOLERANCE = {"float16": 5e-3, "bfloat16": 2e-2, "float32": 1e-3, "float64": 1e-3}


@dataclass(frozen=True)
class Case:
    """A model with one set of inputs, by name, and of expected outputs, in the model's order."""

    name: str
    op: str
    model: onnx.ModelProto
    inputs: dict[str, np.ndarray]
    outputs: tuple[np.ndarray, ...]


@dataclass(frozen=True)
class Result:
    """End of a case, one of OUTCOMES, and the reason if it is not `ok`."""

    case: str
    op: str
    outcome: str
    reason: str = ""
    seconds: float = 0.0


def cases() -> list[Case]:
    """Collect the cases of the onnx package whose inputs and outputs are tensors of numbers."""
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        collected = collect_testcases(None)
    read = (_read(each) for each in collected if not each.name.endswith("_expanded"))
    return sorted((case for case in read if case is not None), key=lambda case: case.name)


def _read(case: object) -> Case | None:
    model, (values, expected) = case.model, case.data_sets[0]
    arrays = [numpy_helper.to_array(v) if isinstance(v, onnx.TensorProto) else v for v in (*values, *expected)]
    if any(
        not isinstance(each, (np.ndarray, np.generic)) or np.asarray(each).dtype.kind not in "biuf" for each in arrays
    ):
        return None
    if any(not info.type.HasField("tensor_type") for info in model.graph.input):
        return None
    inputs = {info.name: np.asarray(value) for info, value in zip(model.graph.input, arrays)}
    outputs = tuple(np.asarray(each) for each in arrays[len(values) :])
    return Case(case.name, model.graph.node[0].op_type, model, inputs, outputs)


def spread(found: list[Case], most: int) -> list[Case]:
    """Choose at most `most` cases of each operator, spread over its forms; 0 takes all."""
    by_op: dict[str, list[Case]] = {}
    for case in found:
        by_op.setdefault(case.op, []).append(case)
    chosen = []
    for forms in by_op.values():
        count = min(most or len(forms), len(forms))
        chosen += [forms[index * len(forms) // count] for index in range(count)]
    return chosen


def compile_case(case: Case, target: Target, folder: Path) -> Result:
    """Compile and run a case in this process; the other inputs become constants if it is refused."""
    source, start = folder / "model.onnx", time.perf_counter()
    onnx.save(_runnable(case.model), source)
    reason, first = "", next(iter(case.inputs), "")
    rest = {name: value for name, value in case.inputs.items() if name != first}
    for fix in ({}, rest) if rest else ({},):
        try:
            api.compile_model(source, target, out=folder / "out", search=SearchSettings(workers=0), fix=fix)
            reason = _difference(case, fix, folder / "out") if target.name == "x86-64" else ""
            return Result(case.name, case.op, "wrong" if reason else "ok", reason, time.perf_counter() - start)
        except NumericError as error:
            return Result(case.name, case.op, "wrong", str(error), time.perf_counter() - start)
        except PassfitError as error:
            reason = f"{type(error).__name__}: {error}"
    return Result(case.name, case.op, "refused", reason, time.perf_counter() - start)


def _runnable(model: onnx.ModelProto) -> onnx.ModelProto:
    """Declare an operator set of ONNX Runtime's if the model is valid in it: the newest sets only add dtypes."""
    lowered = onnx.ModelProto()
    lowered.CopyFrom(model)
    lowered.ir_version = min(lowered.ir_version, 10)
    for opset in lowered.opset_import:
        if not opset.domain:
            opset.version = min(opset.version, 22)
    try:
        onnx.checker.check_model(lowered, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError, RuntimeError):
        return model
    return lowered


def _difference(case: Case, fixed: dict[str, np.ndarray], out: Path) -> str:
    """Run the shared object on the inputs of the case; the first difference from the expected outputs, or nothing."""
    program = read_plan(out / "plan.json").program
    library = ctypes.CDLL(str(out / "libmodel.so"))
    for kind in ("input", "output"):
        getattr(library, f"model_{kind}").restype = ctypes.c_void_p
    for number, port in enumerate(program.inputs):
        value = np.ascontiguousarray(case.inputs[port.name])
        ctypes.memmove(library.model_input(number), value.ctypes.data, value.nbytes)
    if library.model_run():
        return "the library failed on the inputs of the case"
    for number, (port, expected) in enumerate(zip(program.outputs, case.outputs, strict=True)):
        tensor = program.tensors[port.tensor]
        dtype = numpy_dtype(tensor.dtype)
        if (tensor.shape, dtype) != (expected.shape, expected.dtype):
            return f"'{port.name}' is {dtype}{list(tensor.shape)}, expected {expected.dtype}{list(expected.shape)}"
        at = library.model_output(number)
        found = np.frombuffer(ctypes.string_at(at, tensor.nbytes), dtype).reshape(tensor.shape)
        if not _close(found, expected):
            return f"'{port.name}' differs from the expected values"
    return ""


def _close(found: np.ndarray, expected: np.ndarray) -> bool:
    if expected.dtype.name not in TOLERANCE:
        return np.array_equal(found, expected)
    found, wanted = found.astype(np.float64), expected.astype(np.float64)
    finite = wanted[np.isfinite(wanted)]
    scale = max(float(np.ptp(finite)), float(np.abs(finite).max()), 1e-6) if finite.size else 1.0
    return np.allclose(found, wanted, rtol=0, atol=TOLERANCE[expected.dtype.name] * scale, equal_nan=True)


def _child(case: Case, target: Target, file: Path) -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    with tempfile.TemporaryDirectory() as folder:
        try:
            result = compile_case(case, target, Path(folder))
        except Exception as error:  # a crash is an outcome
            last = traceback.extract_tb(error.__traceback__)[-1]
            at = f"{Path(last.filename).name}:{last.lineno}"
            result = Result(case.name, case.op, "crash", f"{type(error).__name__}: {error} ({at})")
    file.write_text(json.dumps(vars(result)))


def apart(chosen: list[Case], target: Target, processes: int, folder: Path) -> Iterator[Result]:
    """Run `compile_case` of each in a process of its own: a case that crashes or hangs ends that process only."""
    waiting, running = chosen[::-1], []
    while waiting or running:
        while waiting and len(running) < processes:
            case = waiting.pop()
            file = folder / f"{case.name}.json"
            file.unlink(missing_ok=True)
            process = multiprocessing.get_context("fork").Process(target=_child, args=(case, target, file))
            process.start()
            running.append((case, process, file, time.monotonic() + TIMEOUT))
        wait([process.sentinel for _, process, _, _ in running], 1)
        for each in [each for each in running if not each[1].is_alive() or time.monotonic() > each[3]]:
            running.remove(each)
            yield _ended(*each[:3])


def _known(file: Path) -> Result | None:
    return Result(**json.loads(file.read_text())) if file.exists() else None


def _ended(case: Case, process: multiprocessing.Process, file: Path) -> Result:
    if process.is_alive():
        process.kill()
        process.join()
        found = Result(case.name, case.op, "time-out", f"not done in {TIMEOUT} s")
    elif file.exists():
        return Result(**json.loads(file.read_text()))
    else:
        found = Result(case.name, case.op, "crash", f"the process ended with exit code {process.exitcode}")
    file.write_text(json.dumps(vars(found)))
    return found


def table(results: list[Result], target: str, head: list[str]) -> Iterator[str]:
    """Yield the lines of node_tests.md."""
    counts = Counter(each.outcome for each in results)
    yield from ("# ONNX's tests of single operators", "", *head, "")
    yield f"Target {target}, the default search."
    yield ""
    yield "| cases | operators | " + " | ".join(OUTCOMES) + " |"
    yield "| --- " * (len(OUTCOMES) + 2) + "|"
    yield (
        f"| {len(results)} | {len({each.op for each in results})} | "
        + " | ".join(str(counts[o]) for o in OUTCOMES)
        + " |"
    )
    for outcome in reversed(OUTCOMES[1:]):
        listed = [each for each in results if each.outcome == outcome]
        if listed:
            yield from ("", f"## {outcome}", "", "| case | operator | reason |", "| --- | --- | --- |")
            yield from (f"| {each.case} | {each.op} | {_cell(each.reason)} |" for each in listed)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")[:220]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--op", action="append", help="only this operator; repeatable")
    parser.add_argument("--case", action="append", help="only this case; repeatable")
    parser.add_argument("--most", type=int, default=3, help="cases of an operator; 0: all (default: 3)")
    parser.add_argument("--target", default="x86-64")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--again", action="store_true", help="run again the cases known at this commit")
    arguments = parser.parse_args()
    target = get_target(arguments.target)
    chosen = [
        case
        for case in spread(cases(), 0 if arguments.case else arguments.most)
        if (not arguments.op or case.op in arguments.op) and (not arguments.case or case.name in arguments.case)
    ]

    # imported here once: every process has it then
    import passfit.kernels.lower.lower
    import passfit.search.search  # noqa: F401

    filtered = arguments.op or arguments.case
    origin, folder = begin(f"node_tests-{target.name}")
    results = [] if arguments.again else [_known(folder / f"{case.name}.json") for case in chosen]
    results = [result for result in results if result is not None]
    done = {result.case for result in results}
    for result in apart([case for case in chosen if case.name not in done], target, arguments.processes, folder):
        results.append(result)
        print(f"{result.outcome:9} {result.seconds:6.1f} s  {result.case}  {_cell(result.reason)}", flush=True)
    results.sort(key=lambda result: result.case)
    text = "\n".join(table(results, target.name, origin.lines(".venv/bin/python benchmarks/node_tests.py"))) + "\n"
    if filtered:
        print(text)
    else:
        (RESULTS / "node_tests.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
