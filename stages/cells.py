"""Stage `cells`: compute all cells, a model on a target each, on all cores or a cluster, if params.yaml has an executor.

    cells that changed ─► groups, a process each ─► out/optimize, out/compile, out/cells ─► footprints

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
from passfit.stages._processes import Cell, Divide, Run, here, on_cluster
from passfit.stages.cell import is_stale
from passfit.stages.footprint import footprint
from passfit.support.children import describe_end
from passfit.targets.catalogue import load_catalogue

#: most cells of a process: memory that one of them leaves is free again after so many
_TOGETHER = 24
#: names of a cell's steps, as failures are kept by
_STEPS = ("optimize", "compile_library")
_LISTED = 5


def cells(params: Params) -> str:
    """Bring all cells of params.yaml up to date. Raises PassfitError that names cells without a result."""
    declared_cells = declared(params)
    _drop_others(declared_cells)
    stale = [cell for cell in declared_cells if is_stale(*cell)]
    with _processes(params.executor or "local") as (run, count, divide), ThreadPoolExecutor(count) as pool:
        for task in as_completed([pool.submit(_complete, run, group) for group in divide(stale)]):
            task.result()
    failed = [cell for cell in stale if is_stale(*cell)]
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


def group_cells(cells: Sequence[Cell], processes: int, most: int = _TOGETHER) -> list[list[Cell]]:
    """Divide cells into groups that keep their order: targets of a model share work in one process.

    Groups get smaller to the end, so that no process waits long for the last one.
    """
    groups, begin = [], 0
    while begin < len(cells):
        size = max(1, min(most, (len(cells) - begin) // processes))
        groups.append(list(cells[begin : begin + size]))
        begin += size
    return groups


@contextmanager
def _processes(executor: str) -> Iterator[tuple[Run, int, Divide]]:
    """Yield how to run a group, how many run at once, and how cells are divided into groups."""
    if executor.startswith("dask://"):
        with on_cluster(executor) as found:
            yield found
        return
    _, _, number = executor.partition(":")
    count = int(number or len(os.sched_getaffinity(0)))
    yield here, count, partial(group_cells, processes=count)


def _complete(run: Run, cells: Sequence[Cell]) -> None:
    """Run a group of cells; a cell whose process dies is tried once more, then left out."""
    for cell in cells:
        for step in _STEPS:
            record_failure(Path(), step, None, *cell)
    left, died = list(cells), ("", "")
    while left:
        ended = run(left)
        sys.stdout.write(ended.stdout or "")
        sys.stderr.write(ended.stderr)
        left = [cell for cell in left if is_stale(*cell) and not why_failed(Path(), *cell)]
        if ended.returncode >= 0 or not left:
            return
        if left[0] == died:
            message = f"{' @ '.join(died)}: {describe_end(ended.returncode)}, twice."
            record_failure(Path(), _STEPS[0], message, *left.pop(0))
            sys.stderr.write(f"passfit: {message}\n")
        died = left[0] if left else ("", "")


def _drop_others(cells: Sequence[Cell]) -> None:
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
