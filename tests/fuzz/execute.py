"""Compile and run cases, many as one library, in forked processes: what dies or hangs there ends one case only."""

from __future__ import annotations

import contextlib
import os
import signal
import tempfile
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from passfit.errors import NumericError, PassfitError

from .cases import Case
from .draw import Illegal
from .judge import NETWORKS, Result, judge, refusal
from .sequences import resolved
from .unsplit import against_unsplit, has_splits

if TYPE_CHECKING:
    from passfit.backend.built import LoadedLibrary
    from passfit.codegen.checks.guard_kernels import Reasons
    from passfit.kernels.lower.lower import Lowered

#: seconds of one case on its way to a program, and of building and running a batch
LIMIT = 900
Drawer = Callable[[int], Case]


def run_seeds(draw: Drawer, seeds: Sequence[int]) -> Iterator[Result]:
    """Yield the result of each seed's case; a batch whose library fails is run again in halves."""
    waiting = [list(seeds)]
    while waiting:
        batch = waiting.pop()
        done, failed = yield from _attempt(draw, batch)
        if not failed:
            continue
        rest = [seed for seed in batch if seed not in done]
        if failed.seed in rest:  # one case alone ended the process
            yield failed
            rest.remove(failed.seed)
            waiting += [rest] if rest else []
        elif len(rest) == 1:
            yield Result(rest[0], failed.title or _title(draw, rest[0]), failed.verdict, failed.reason)
        else:
            middle = len(rest) // 2
            waiting += [rest[middle:], rest[:middle]]


def _title(draw: Drawer, seed: int) -> str:
    try:
        return draw(seed).title
    except Illegal:
        return "?"


def _attempt(draw: Drawer, seeds: list[int]) -> Iterator[Result]:
    """Run a batch in a fork; return the seeds done and the failure, of seed −1 if it belongs to all others."""
    ours, theirs = Pipe(duplex=False)
    child = os.fork()
    if child == 0:
        _serve(theirs, draw, seeds)
    theirs.close()
    done: set[int] = set()
    at, title, failed = -1, "", None
    while True:
        if not ours.poll(LIMIT):
            failed = Result(at, title, "hang", f"not done in {LIMIT} s")
            break
        try:
            kind, value = ours.recv()
        except EOFError:
            break
        if kind == "at":
            at, title = value
        elif kind == "failed":
            failed = value
        else:
            done.add(value.seed)
            yield value
    os.kill(child, signal.SIGKILL) if failed and failed.verdict == "hang" else None
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    ours.close()
    if failed is None and code:
        how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        failed = Result(at, title, "crash", f"the process died: {how}")
    return done, failed


def _serve(pipe: Connection, draw: Drawer, seeds: Sequence[int]) -> None:
    """Answer in the child, and end it."""
    code = 1
    try:
        _work(pipe, draw, seeds)
        code = 0
    finally:
        os._exit(code)


def _work(pipe: Connection, draw: Drawer, seeds: Sequence[int]) -> None:
    ready: list[tuple[int, Case, Compiled]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for seed in seeds:
            pipe.send(("at", (seed, "")))
            try:
                case = draw(seed)
            except Illegal as error:
                pipe.send(("done", Result(seed, str(error).split(":")[0], "illegal", str(error))))
                continue
            pipe.send(("at", (seed, case.title)))
            part = _compiled(seed, case, len(ready), folder)
            if isinstance(part, Result):
                pipe.send(("done", part))
            else:
                ready.append((seed, case, part))
        pipe.send(("at", (-1, "")))
        if not ready:
            return
        pairs = [(part, case.inputs) for _, case, part in ready]
        try:
            library = linked(pairs, folder)
            results = outputs_of(library, pairs)
        except Exception as error:  # of one of them: run again in halves
            pipe.send(("failed", Result(-1, "", "crash", last_line(error))))
            return
        for (seed, case, part), outputs in zip(ready, results):
            result = judge(seed, case, outputs)
            if len(ready) == 1 and result.verdict != "wrong":
                result = _after_wild(result, case, part, library, outputs)
            if len(ready) == 1 and has_splits(case):
                result = against_unsplit(result, case, part, library, outputs, folder)
            pipe.send(("done", result))


def _after_wild(
    result: Result, case: Case, part: Compiled, library: LoadedLibrary, outputs: Sequence[np.ndarray]
) -> Result:
    """Run a library on NaN, infinities and the largest floats; judge it `wrong` if the next run of its case differs."""
    wild = np.float32([np.nan, np.inf, -np.inf, 3e38, -3e38, 0])
    for start in range(len(wild)):
        given = {
            name: np.resize(np.roll(wild, start), value.shape)
            for name, value in case.inputs.items()
            if value.dtype == wild.dtype
        }
        with contextlib.suppress(NumericError):  # it may refuse them
            outputs_of(library, [(part, case.inputs | given)])
    (again,) = outputs_of(library, [(part, case.inputs)])
    if all(one.tobytes() == other.tobytes() for one, other in zip(again, outputs)):
        return result
    return replace(result, verdict="wrong", reason="other outputs after a run on wild inputs")


def _compiled(seed: int, case: Case, number: int, folder: Path) -> Compiled | Result:
    """Compile a case, or say how it ended."""
    try:
        return compile_case(case, number, folder)
    except PassfitError as error:
        return refusal(seed, case.title, str(error))
    except Exception as error:  # a bug is a verdict
        return Result(seed, case.title, "crash", last_line(error))


@dataclass(frozen=True)
class Compiled:
    """Lowered program, its workspace in bytes, the objects of its kernels, and the reasons for which these may fail."""

    lowered: Lowered
    workspace: int
    objects: tuple[Path, ...]
    reasons: Reasons

    def named(self, inputs: dict[str, np.ndarray], number: int = 0) -> dict[str, np.ndarray]:
        """Return inputs by the names they have in a library where this is part `number`."""
        from ..nodes.merging import port_name

        return {port_name(number, name): value for name, value in inputs.items()}


def compile_case(case: Case, number: int, folder: Path) -> Compiled:
    """Import, lower and compile the case that is to be part `number` of a library."""
    from passfit.backend.built import NAME, host
    from passfit.codegen import symbol
    from passfit.codegen.checks.guard_kernels import guard_kernels
    from passfit.codegen.functions.merge_kernels import merge_identical_kernels
    from passfit.codegen.objects import build_objects
    from passfit.tuning.slow_kernels import slow_kernels

    from ..nodes.merging import port_name

    lowered, workspace = lower_case(case, folder)
    slow_kernels(lowered, host())  # the model of cycles takes every kernel
    lowered, reasons = guard_kernels(merge_identical_kernels(lowered), host().index_checks)
    kernels = {symbol(NAME, port_name(number, name)): kernel for name, kernel in lowered.kernels.items()}
    place = Path(tempfile.mkdtemp(dir=folder))
    return Compiled(lowered, workspace, tuple(build_objects(kernels, host(), place)) if kernels else (), reasons)


def lower_case(case: Case, folder: Path) -> tuple[Lowered, int]:
    """Import a case and lower it by its passes; return the program and its workspace in bytes."""
    from passfit.backend.built import SHORT, host, imported
    from passfit.frontend.imported_model import port_names
    from passfit.frontend.relax.to_relax import to_relax
    from passfit.passes.sequence.replay import replay
    from passfit.passes.sequence.sequence import Sequence as PassSequence
    from passfit.search.evaluate.tvm_default import tvm_default

    model = imported(case.model, {}, {}, folder)
    if case.title in NETWORKS:
        found = tvm_default(to_relax(model), host(), *port_names(model))
        assert found.ram is not None, f"tvm-default: {found.unavailable}"
    return replay(
        PassSequence.parse(resolved(case.passes or SHORT, model)), to_relax(model), model, "model", host().machine
    )


Parts = Sequence[tuple[Compiled, dict[str, np.ndarray]]]


def linked(parts: Parts, folder: Path) -> LoadedLibrary:
    """Link one library of all programs, and load it."""
    from passfit.backend.built import NAME, LoadedLibrary, link_lowered

    from ..nodes.merging import merge, port_name

    merged = merge([part.lowered for part, _ in parts])
    merged = replace(merged, program=replace(merged.program, name=NAME))
    objects = [path for part, _ in parts for path in part.objects]
    reasons = {
        port_name(number, name): each for number, (part, _) in enumerate(parts) for name, each in part.reasons.items()
    }
    workspace = max(part.workspace for part, _ in parts)
    return LoadedLibrary(link_lowered(merged, workspace, folder, objects, reasons))


def outputs_of(library: LoadedLibrary, parts: Parts) -> list[list[np.ndarray]]:
    """Run all programs of a library, each with its inputs; return the outputs of each."""
    from ..nodes.merging import port_name

    found = library.run(
        {name: value for number, (part, given) in enumerate(parts) for name, value in part.named(given, number).items()}
    )
    return [
        [found[port_name(number, port.name)] for port in part.lowered.program.outputs]
        for number, (part, _) in enumerate(parts)
    ]


def last_line(error: Exception) -> str:
    """Return type, message and innermost place of an exception."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {(lines or [''])[-1][:200]} ({Path(last.filename).name}:{last.lineno})"
