"""Stage `cells`: compute all cells, a model on a target each, on all cores or a cluster, if params.yaml has an executor.

    models ─► groups of cells of one model ─► a process each ─► out/optimize, out/compile, out/cells ─► footprints

It stands for the stages `optimize`, `compile` and `footprint`, of which DVC would run one at a time, each in a new process.
Only stale cells are computed: a run that ends half-way keeps those that are done.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from functools import partial, wraps
from pathlib import Path

from passfit.artifacts.failures import record_failure, why_failed
from passfit.artifacts.places import CELLS, cell_record, compile_dir, kept_footprint, optimize_dir
from passfit.errors import PassfitError
from passfit.params.params import Params, declared
from passfit.stages._common import attempt, run_stage
from passfit.stages._processes import Run, here, on_cluster
from passfit.stages.cell import is_stale
from passfit.stages.footprint import footprint
from passfit.support.children import describe_end
from passfit.targets.catalogue import load_catalogue

#: groups for each process, so that none waits long for the last one
_GROUPS = 2
#: names of a cell's steps, as failures are kept by
_STEPS = ("optimize", "compile_library")
_LISTED = 5


def cells(params: Params) -> str:
    """Bring all cells of params.yaml up to date. Raises PassfitError that names cells without a result."""
    declared_cells = declared(params)
    _drop_others(declared_cells)
    stale = [cell for cell in declared_cells if is_stale(*cell)]
    with _processes(params.executor or "local") as (run, count, parts), ThreadPoolExecutor(count) as pool:
        tasks = [pool.submit(_complete, run, *group) for group in group_cells(stale, parts)]
        for task in as_completed(tasks):
            task.result()
    failed = [cell for cell in declared_cells if is_stale(*cell)]
    judge = wraps(footprint)(partial(footprint, catalogue=load_catalogue(Path())))
    for model, target in declared_cells:
        if (model, target) not in failed and attempt(judge, {"model": model, "target": target}, params):
            failed.append((model, target))
    if failed:
        named = [f"{model} @ {target}" for model, target in failed]
        rest = [f"{len(named) - _LISTED} more"] if len(named) > _LISTED else []
        raise PassfitError(
            f"{len(failed)} of {len(declared_cells)} cells failed: {', '.join([*named[:_LISTED], *rest])}.",
            "The lines above say why. `dvc repro` computes these alone; all others are done.",
        )
    return f"{len(stale)} of {len(declared_cells)} cells computed"


def group_cells(cells: Sequence[tuple[str, str]], parts: int) -> list[tuple[str, list[str]]]:
    """Group cells by model, the largest groups first; halve these until there are as many as `parts`, if possible."""
    by_model: dict[str, list[str]] = {}
    for model, target in cells:
        by_model.setdefault(model, []).append(target)
    groups = list(by_model.items())
    while len(groups) < min(parts, len(cells)):
        groups.sort(key=lambda group: -len(group[1]))
        model, targets = groups.pop(0)
        half = len(targets) // 2
        groups += [(model, targets[:half]), (model, targets[half:])]
    return sorted(groups, key=lambda group: -len(group[1]))


@contextmanager
def _processes(executor: str) -> Iterator[tuple[Run, int, int]]:
    """Yield how to run a group, how many run at once, and the number of groups wanted."""
    if executor.startswith("dask://"):
        with on_cluster(executor) as (run, count):
            yield run, count, sys.maxsize
        return
    _, _, number = executor.partition(":")
    count = int(number or len(os.sched_getaffinity(0)))
    yield here, count, _GROUPS * count


def _complete(run: Run, model: str, targets: Sequence[str]) -> None:
    """Run a group of cells; a cell whose process dies is tried once more, then left out."""
    for target in targets:
        for step in _STEPS:
            record_failure(Path(), step, None, model, target)
    left, died = list(targets), ""
    while left:
        ended = run(model, left)
        sys.stdout.write(ended.stdout)
        sys.stderr.write(ended.stderr)
        left = [target for target in left if is_stale(model, target) and not why_failed(Path(), model, target)]
        if ended.returncode >= 0 or not left:
            return
        if left[0] == died:
            message = f"{model} @ {died}: {describe_end(ended.returncode)}, twice."
            record_failure(Path(), _STEPS[0], message, model, left.pop(0))
            sys.stderr.write(f"passfit: {message}\n")
        died = left[0] if left else ""


def _drop_others(cells: Sequence[tuple[str, str]]) -> None:
    """Remove results of cells that params.yaml no longer declares."""
    for record in CELLS.glob("*/*.json"):
        model, target = record.parent.name, record.stem
        if (model, target) not in cells:
            for place in (optimize_dir(model, target), compile_dir(model, target)):
                shutil.rmtree(place, ignore_errors=True)
            for file in (kept_footprint(model, target), cell_record(model, target)):
                file.unlink(missing_ok=True)
            with suppress(OSError):
                record.parent.rmdir()


if __name__ == "__main__":
    run_stage(cells)
