"""Run cells of a model in a process of their own, in this folder or in one of a Dask worker's.

A worker gets the files that the steps read, and returns those that they wrote, as bytes; its store is its own.
"""

from __future__ import annotations

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

#: runs cells of a model, one after another
Run = Callable[[str, Sequence[str]], "subprocess.CompletedProcess[str]"]
Files = dict[str, bytes]


def here(model: str, targets: Sequence[str], folder: Path = Path()) -> subprocess.CompletedProcess[str]:
    """Compute cells in a new process, below `folder`."""
    command = [sys.executable, "-m", "passfit.stages.cell", model, *targets]
    return children.run(command, cwd=folder, capture_output=True, text=True, check=False)


@contextmanager
def on_cluster(address: str) -> Iterator[tuple[Run, int]]:
    """Yield how to compute cells on a Dask cluster, and how many at once.

    Dask computes the cells of a lost worker again on another one.
    """
    from passfit.search.evaluate.cluster import connect

    params = load_params(Path("params.yaml"))
    client, count = connect(address)
    with client:

        def run(model: str, targets: Sequence[str]) -> subprocess.CompletedProcess[str]:
            from distributed import KilledWorker

            written = [place for target in targets for place in _written(model, target)]
            files = _read(Path(), [*_needed(params, model, targets), *written])
            try:
                ended, files = client.submit(_elsewhere, files, model, list(targets), pure=False).result()
            except KilledWorker:
                return subprocess.CompletedProcess(
                    [], -signal.SIGKILL, "", "passfit: Dask lost every worker of a cell.\n"
                )
            for place in written:
                shutil.rmtree(place, ignore_errors=True)
            _write(Path(), files)
            return ended

        # one more for each, so that none waits for its files
        yield run, count + sum(client.nthreads().values())


def _elsewhere(files: Files, model: str, targets: Sequence[str]) -> tuple[subprocess.CompletedProcess[str], Files]:
    """Compute cells from files; return the files written too."""
    above = max(name.split("/").count("..") for name in files)
    with scratch_folder() as scratch:
        (folder := scratch.joinpath(*["repo"] * (above + 1))).mkdir(parents=True)
        _write(folder, files)
        ended = here(model, targets, folder)
        return ended, _read(folder, [place for target in targets for place in _written(model, target)])


def _needed(params: Params, model: str, targets: Sequence[str]) -> list[Path]:
    """List the files and folders that the cells of a model read."""
    knowledge, source = params.search.knowledge, params.models[model].source
    licence = None if is_package(source) else licence_beside(Path(source))
    return [
        *map(Path, ("params.yaml", "pyproject.toml")),
        *([Path(knowledge)] if knowledge else []),
        *([licence] if licence else []),
        OUT / "toolchain.json",
        canonical_model(model).parent,
        *(Path(settings_file(model, "compile", target)).parent for target in targets),
    ]


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
