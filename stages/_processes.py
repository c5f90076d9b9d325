"""Run cells in a process of their own, in this folder or in one of a Dask worker's.

A worker gets the files that the steps read, and returns those that they wrote, as bytes; its store is its own.
"""

from __future__ import annotations

import itertools
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from passfit.artifacts.places import canonical_model, cell_record, compile_dir, optimize_dir
from passfit.artifacts.sample_files import settings_file
from passfit.frontend.source.provenance import licence_beside
from passfit.frontend.source.source import is_package
from passfit.params.params import Params, load_params
from passfit.stages._common import OUT
from passfit.support import children
from passfit.support.temporary_folder import scratch_folder

#: a model on a target
Cell = tuple[str, str]
#: runs cells one after another
Run = Callable[[Sequence[Cell]], "subprocess.CompletedProcess[str]"]
#: divides cells into groups, in the order of their runs
Divide = Callable[[Sequence[Cell]], list[list[Cell]]]
Files = dict[str, bytes]


def here(cells: Sequence[Cell], folder: Path = Path(), stdout: int | None = None) -> subprocess.CompletedProcess[str]:
    """Compute cells in a new process, below `folder`. Its lines of results come as they are, but for another `stdout`."""
    command = [sys.executable, "-u", "-m", "passfit.stages.cell", *map("@".join, cells)]
    return children.run(command, cwd=folder, stdout=stdout, stderr=subprocess.PIPE, text=True, check=False)


@contextmanager
def on_cluster(address: str) -> Iterator[tuple[Run, int, Divide]]:
    """Yield how to compute cells on a Dask cluster, how many at once, and in which order.

    Dask computes the cells of a lost worker again on another one. Targets of a model share work in a worker's store: they go to
    one worker, unless another has nothing else to do.
    """
    from passfit.search.evaluate.cluster import connect

    params = load_params(Path("params.yaml"))
    client, count = connect(address)
    with client:
        workers: dict[Cell, str] = {}

        def divide(cells: Sequence[Cell]) -> list[list[Cell]]:
            workers.update(deal_cells(cells, sorted(client.nthreads())))
            return [[cell] for cell in workers]

        def run(cells: Sequence[Cell]) -> subprocess.CompletedProcess[str]:
            from distributed import KilledWorker

            written = [place for cell in cells for place in _written(*cell)]
            files = _read(Path(), [*_needed(params, cells), *written])
            try:
                task = client.submit(
                    _elsewhere, files, list(cells), pure=False, workers=workers[cells[0]], allow_other_workers=True
                )
                ended, files = task.result()
            except KilledWorker:
                return subprocess.CompletedProcess(
                    [], -signal.SIGKILL, "", "passfit: Dask lost every worker of a cell.\n"
                )
            for place in written:
                shutil.rmtree(place, ignore_errors=True)
            _write(Path(), files)
            return ended

        # one more for each, so that none waits for its files
        yield run, count + sum(client.nthreads().values()), divide


def deal_cells(cells: Sequence[Cell], workers: Sequence[str]) -> dict[Cell, str]:
    """Deal the models to workers, one after another; order the cells so that each worker's turn comes as often.

    A model's cells keep their order.
    """
    models = dict.fromkeys(model for model, _ in cells)
    owners = dict(zip(models, itertools.cycle(workers)))
    lanes = ([cell for cell in cells if owners[cell[0]] == worker] for worker in workers)
    rounds = itertools.zip_longest(*lanes)
    return {cell: owners[cell[0]] for each in rounds for cell in each if cell is not None}


def _elsewhere(files: Files, cells: Sequence[Cell]) -> tuple[subprocess.CompletedProcess[str], Files]:
    """Compute cells from files; return the files written too."""
    above = max(name.split("/").count("..") for name in files)
    with scratch_folder() as scratch:
        (folder := scratch.joinpath(*["repo"] * (above + 1))).mkdir(parents=True)
        _write(folder, files)
        ended = here(cells, folder, subprocess.PIPE)
        return ended, _read(folder, [place for cell in cells for place in _written(*cell)])


def _needed(params: Params, cells: Sequence[Cell]) -> list[Path]:
    """List the files and folders that cells read."""
    knowledge, found = params.search.knowledge, [OUT / "toolchain.json", *map(Path, ("params.yaml", "pyproject.toml"))]
    for model, target in cells:
        source = params.models[model].source
        licence = None if is_package(source) else licence_beside(Path(source))
        settings = Path(settings_file(model, "compile", target)).parent
        found += [canonical_model(model).parent, settings, *([licence] if licence else [])]
    return [*found, *([Path(knowledge)] if knowledge else [])]


def _written(model: str, target: str) -> list[Path]:
    """List the files and folders that a cell writes; its record last."""
    failures = (OUT / "failures" / step / model / target for step in ("optimize", "compile_library"))
    return [optimize_dir(model, target), compile_dir(model, target), *failures, cell_record(model, target)]


def _read(folder: Path, places: Iterable[Path]) -> Files:
    """Read files and folders, by their paths below `folder`; a missing one has none."""
    found: Files = {}
    for place in places:
        whole = (folder / place).rglob("*") if (folder / place).is_dir() else [folder / place]
        found |= {_name(file, folder): file.read_bytes() for file in whole if file.is_file()}
    return found


def _name(file: Path, folder: Path) -> str:
    return file.relative_to(folder).as_posix()


def _write(folder: Path, files: Files) -> None:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
