"""Compute the stale steps of cells in this process, one cell after another.

    python -m passfit.stages.cell MODEL@TARGET…

out/cells/MODEL/TARGET.json records what each step read and wrote, as dvc.lock does for a stage.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path

from passfit.artifacts.places import canonical_model, cell_record, compile_dir, optimize_dir
from passfit.artifacts.sample_files import settings_file
from passfit.params.params import Params
from passfit.report import progress
from passfit.stages._common import OUT, attempt, prepare, read_json, write_json
from passfit.stages.compile import compile_library
from passfit.stages.optimize import optimize
from passfit.support.digests import places_digest
from passfit.support.interrupts import interruptible


@dataclass(frozen=True)
class Step:
    """Step of a cell: the work of a stage, with the files that it reads, and the folder it writes."""

    name: str
    work: Callable[[Params, str, str], str]
    reads: tuple[Path, ...]
    writes: Path

    def state(self) -> dict[str, str]:
        """Return the digests of the files read and written, as they are now."""
        return {"reads": places_digest(self.reads), "writes": places_digest([self.writes])}


def steps(model: str, target: str) -> tuple[Step, Step]:
    """Return the steps of a cell; they read what the stages of the same names depend on in dvc.yaml."""
    file, searched, versions = canonical_model(model), optimize_dir(model, target), OUT / "toolchain.json"
    search, verify = (Path(settings_file(model, name, target)) for name in ("search", "compile"))
    return (
        Step("optimize", optimize, (file, search, versions), searched),
        Step(
            "compile",
            compile_library,
            (file.parent, searched / "sequence.json", verify, versions),
            compile_dir(model, target),
        ),
    )


def is_stale(model: str, target: str) -> bool:
    """Return whether a step of a cell was not run on what there is now."""
    recorded = _recorded(model, target)
    return any(recorded.get(step.name) != step.state() for step in steps(model, target))


def compute(model: str, target: str) -> int:
    """Run the stale steps of a cell; return the exit code of the last one."""
    for step in steps(model, target):
        recorded = _recorded(model, target)
        if recorded.get(step.name) == step.state():
            continue
        if code := attempt(_with_one_worker(step.work), {"model": model, "target": target}):
            return code
        write_json(cell_record(model, target), {**recorded, step.name: step.state()})
    return 0


def _recorded(model: str, target: str) -> dict:
    file = cell_record(model, target)
    return read_json(file) if file.is_file() else {}


def _with_one_worker(work: Callable[[Params, str, str], str]) -> Callable[[Params, str, str], str]:
    """Leave the other cores to other cells, unless params.yaml says how many workers a search has."""

    @wraps(work)
    def alone(params: Params, model: str, target: str) -> str:
        workers = 1 if params.search.workers is None else params.search.workers
        return work(
            params.model_copy(update={"search": params.search.model_copy(update={"workers": workers})}), model, target
        )

    return alone


if __name__ == "__main__":
    prepare()
    progress.EVERY = math.inf  # of several cells at once, only results are shown
    with interruptible():
        codes = [compute(*cell.split("@")) for cell in sys.argv[1:]]
    raise SystemExit(max(codes, default=0))
