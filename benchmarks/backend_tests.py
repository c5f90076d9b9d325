"""Run onnx's own backend runner on passfit.backend; write results/backend_tests.md, the counts by verdict.

    .venv/bin/python benchmarks/backend_tests.py                  every test that needs no download
    .venv/bin/python benchmarks/backend_tests.py --only softmax   tests of that in their names; nothing is written

The runner is `onnx.backend.test.BackendTest`, unchanged; so are its models, inputs, expected outputs and tolerances. A
test ends as `passed`, `refused` (exit code 2 of the command line), `disputed` (the runner's comparison fails, and that of
ONNX Runtime's outputs too), `wrong` (it fails) or `crash` (a bug, a process that died, or one that took too long). Tests
pass `by import` whose inputs all have to be frozen: nothing is left to compile. Results are kept by commit, machine and versions: an interrupted run goes on.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import re
import tempfile
import time
import unittest
import warnings
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import onnx
import onnx.backend.base
import onnx.backend.test
from head import begin, publish
from tables import plain

from passfit import backend
from passfit.frontend.canonical.folding.evaluate import open_session

#: characters of a reason in a table
CELL = 220
VERDICTS = ("passed", "refused", "disputed", "wrong", "crash")
#: start of the address of a model that comes with the onnx package; others are downloaded
LOCAL = "onnx/backend/test/data/light/"


@dataclass(frozen=True)
class Result:
    """End of a test of a category, with the reason if it did not pass."""

    category: str
    test: str
    verdict: str
    reason: str
    seconds: float
    by_import: bool = False


class RuntimeModel(onnx.backend.base.BackendRep):
    """Model in ONNX Runtime."""

    def __init__(self, model: onnx.ModelProto):
        self._names = [value.name for value in model.graph.input]
        self._session = open_session(model.SerializeToString())

    def run(self, inputs: Any, **_: Any) -> tuple[np.ndarray, ...]:
        """Return the outputs for a list of inputs."""
        return tuple(self._session.run(None, dict(zip(self._names, inputs))))


class Runtime(onnx.backend.base.Backend):
    """Backend of ONNX Runtime, as the reference reads models."""

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **_: Any) -> RuntimeModel:
        """Load a model."""
        return RuntimeModel(model)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Return whether a device is this machine's processor."""
        return device == "CPU"


class Recording(backend.Backend):
    """Keep the latest refusal: the runner counts refused tests as passed ones."""

    refusal = ""
    by_import = False

    @classmethod
    def is_compatible(cls, model: onnx.ModelProto, device: str = "CPU", **_: Any) -> bool:
        """Answer yes: the refusal of `prepare` has a reason."""
        return cls.supports_device(device)

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **options: Any) -> backend.PreparedModel:
        """Prepare a model whose refusal is kept."""
        prepared = _kept(super().prepare, model, device, **options)
        run = prepared.run

        def run_kept(inputs: Any, **more: Any) -> tuple[np.ndarray, ...]:
            results = _kept(run, inputs, **more)
            Recording.by_import = bool(prepared.inputs) and prepared.frozen == prepared.inputs
            return results

        prepared.run = run_kept
        return prepared


def _kept(function: Any, *arguments: Any, **options: Any) -> Any:
    try:
        return function(*arguments, **options)
    except backend.Unsupported as refusal:
        Recording.refusal = str(refusal)
        raise


@cache
def suite(of: type[onnx.backend.base.Backend] = Recording) -> dict[str, type[unittest.TestCase]]:
    """Collect the runner's test cases for this machine's processor, by category."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return onnx.backend.test.BackendTest(of, __name__).test_cases


def names(only: str = "") -> list[tuple[str, str]]:
    """List category and name of every test on the processor that needs no download."""
    remote = set()
    for case in onnx.backend.test.loader.load_model_tests(kind="real"):
        if case.url is not None and not case.url.startswith(LOCAL):
            remote.add(f"{case.name}_cpu")
    found = [
        (category, name)
        for category, case in suite().items()
        for name in unittest.defaultTestLoader.getTestCaseNames(case)
        if name.endswith("_cpu") and name not in remote and re.search(only, name)
    ]
    return sorted(found)


def run_test(category: str, name: str) -> Result:
    """Run one test of the runner's."""
    Recording.refusal, Recording.by_import, started = "", False, time.perf_counter()
    result = _run(suite()[category](name))
    seconds = time.perf_counter() - started
    verdict, reason = "passed", ""
    if Recording.refusal or result.skipped:
        verdict, reason = "refused", Recording.refusal or result.skipped[0][1]
    elif result.failures:
        disputed = _run(suite(Runtime)[category](name)).failures
        verdict, reason = "disputed" if disputed else "wrong", _reason(result.failures[0][1])
    elif result.errors:
        verdict, reason = "crash", _reason(result.errors[0][1])
    return Result(
        category.removeprefix("OnnxBackend").removesuffix("Test"), name.removesuffix("_cpu"), verdict, reason, seconds,
        verdict == "passed" and Recording.by_import,
    )  # fmt: skip


def _run(test: unittest.TestCase) -> unittest.TestResult:
    result = unittest.TestResult()
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        test.run(result)
    return result


def _reason(text: str) -> str:
    """Return the comparison that failed, or the last line of a traceback."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    first = next((number for number, line in enumerate(lines) if line.startswith("AssertionError")), len(lines) - 1)
    return " ".join(lines[first : first + 5])


def table(results: list[Result], head: list[str]) -> Iterator[str]:
    """Yield the lines of backend_tests.md."""
    yield from ("# onnx's backend tests", "", *head, "")
    yield "Compiled by `legalize; fold-constant; fuse-operators` for this machine, run in a warm process, compared by onnx's runner."
    yield "`disputed`: ONNX Runtime's outputs are not the expected ones either; `by import`: every input had to be frozen."
    yield from (
        "",
        f"| category | tests | {' | '.join(VERDICTS)} | passed by import | seconds a test |",
        "| --- " * (len(VERDICTS) + 4) + "|",
    )
    for category in dict.fromkeys(each.category for each in results):
        listed = [each for each in results if each.category == category]
        counts = Counter(each.verdict for each in listed)
        cells = [category, str(len(listed)), *(str(counts[verdict]) for verdict in VERDICTS)]
        cells.append(str(sum(each.by_import for each in listed)))
        yield f"| {' | '.join(cells)} | {sum(each.seconds for each in listed) / len(listed):.2f} |"
    for verdict in reversed(VERDICTS[1:]):
        listed = [each for each in results if each.verdict == verdict]
        if listed:
            yield from ("", f"## {verdict}", "", "| category | test | reason |", "| --- | --- | --- |")
            yield from (f"| {each.category} | {each.test} | {plain(each.reason, CELL)} |" for each in listed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="a regular expression: tests with it in their names")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--again", action="store_true", help="run again the tests known at this commit")
    arguments = parser.parse_args()
    origin, folder = begin("backend_tests")
    rows = folder / "rows.jsonl"
    known = (
        []
        if arguments.again or not rows.exists()
        else [Result(**json.loads(row)) for row in rows.read_text().splitlines()]
    )
    done = {(f"OnnxBackend{each.category}Test", f"{each.test}_cpu") for each in known}
    chosen = names(arguments.only)
    results = [each for each in known if (f"OnnxBackend{each.category}Test", f"{each.test}_cpu") in set(chosen)]
    started = time.perf_counter()
    with (
        tempfile.TemporaryDirectory() as models,
        ProcessPoolExecutor(arguments.processes) as pool,
        rows.open("a") as file,
    ):
        os.environ["ONNX_MODELS"] = models
        waiting = [pool.submit(run_test, *each) for each in chosen if each not in done]
        for future in as_completed(waiting):
            result = future.result()
            results.append(result)
            file.write(json.dumps(vars(result)) + "\n")
            file.flush()
            if result.verdict in ("wrong", "crash"):
                print(
                    f"{result.verdict:8} {result.seconds:5.1f} s  {result.test}  {plain(result.reason, CELL)}",
                    flush=True,
                )
        if waiting:
            print(f"{len(waiting) / (time.perf_counter() - started):.2f} tests a second")
    results.sort(key=lambda each: (each.category, each.test))
    text = "\n".join(table(results, origin.lines(".venv/bin/python benchmarks/backend_tests.py"))) + "\n"
    publish("backend_tests", text, whole=not arguments.only)


if __name__ == "__main__":
    main()
