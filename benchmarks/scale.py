"""Measure repos of 1 to 300 cells, small models on targets: seconds a cell, a repro of nothing, Dask; write results/scale.md.

    .venv/bin/python benchmarks/scale.py [--models N] [--targets N] [--only-dask]

Every repo and every store is new. The repo grows: each size is measured by the cells that it adds. A cell by itself is a
repo of its own with the stages of each cell; a Dask worker has one thread, and a core of its own as a machine would be.
"""

from __future__ import annotations

import argparse
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from head import head, publish
from zoo.network import Network

MODELS = 50
#: of each kind: desktop, boards of Linux, microcontrollers; all of them run here, natively or emulated
TARGETS = ("x86-64", "mps2-an386", "rpi4", "rv32-virt", "beaglebone", "visionfive2")
#: models of each size of the repo
SIZES = (1, 2, 10, MODELS)
#: cells by themselves, and models of the repos for Dask
ALONE, ON_DASK = 4, 3
#: cells of the estimate
FAR = 10_000
_HERE = Path(sys.executable).parent


def small_model(number: int) -> onnx.ModelProto:
    """Return one of any number of different small networks: convolutions of three kinds, in blocks, and a classifier."""
    random = np.random.default_rng([7, number])
    size = int(random.choice([12, 16, 20, 24]))
    net = Network(f"small-{number}", (1, int(random.choice([1, 3])), size, size), seed=number)
    x = net.relu(net.conv("input", int(random.integers(4, 13)), stride=2))
    for _ in range(int(random.integers(1, 4))):
        channels, wider = net.channels(x), int(random.integers(4, 25))
        kind = random.choice(["plain", "separable", "residual"])
        if kind == "plain":
            x = net.relu(net.conv(x, wider))
        elif kind == "separable":
            x = net.relu(net.conv(net.relu6(net.conv(x, channels, groups=channels)), wider, 1))
        else:
            x = net.relu(net.add(x, net.conv(net.relu(net.conv(x, channels)), channels)))
    return net.model(net.dense(net.flatten(net.global_average_pool(x)), 4))


class Repo:
    """Repo of git and DVC with a store of its own."""

    def __init__(self, root: Path):
        self.root = root
        (root / "models").mkdir(parents=True)
        self._environment = os.environ | {
            "PASSFIT_STORE": f"{root}-store", "PATH": f"{_HERE}{os.pathsep}{os.environ['PATH']}",
        }  # fmt: skip
        for command in (("git", "init", "-q"), ("dvc", "init", "-q"), ("dvc", "config", "core.analytics", "false")):
            self.run(*command)

    def run(self, *command: str) -> float:
        """Run a command in the repo; return its seconds."""
        started = time.monotonic()
        done = subprocess.run(
            command, cwd=self.root, env=self._environment, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise SystemExit(f"{' '.join(command)} in {self.root}:\n{done.stdout[-4000:]}{done.stderr[-4000:]}")
        return time.monotonic() - started

    def declare(self, models: range, targets: tuple[str, ...], executor: str | None = None) -> None:
        """Add models; the first ones with all targets, and an executor in place of the stages of each cell."""
        files = [f"models/small-{number}.onnx" for number in models]
        for number, file in zip(models, files):
            onnx.save(small_model(number), self.root / file)
        if (self.root / "dvc.yaml").exists():
            self.run("passfit", "add", *files)
            return
        named = [word for file in files for word in ("--model", file)]
        self.run("passfit", "init", *named, *(word for target in targets for word in ("--target", target)))
        if executor:
            params = self.root / "params.yaml"
            params.write_text(params.read_text().replace("executor: null", f"executor: {executor}"))
            self.run("passfit", "add", "--target", targets[0])

    def commit_rest(self, models: int) -> None:
        """Have DVC take the stages after the cells, and `profile`, for done: with files that say nothing."""
        report = [
            f"report/{name}" for name in ("index.html", "index-passes.html", "plots/ram.json", "plots/time/a.json")
        ]
        profiles = [f"profile/small-{number}/effects.json" for number in range(models)]
        for name in (*profiles, *report, "report/plots/history/a.json", "track.json"):
            (place := self.root / "out" / name).parent.mkdir(parents=True, exist_ok=True)
            place.write_text("{}")
        self.run("dvc", "commit", "-f", "-q", "profile", "track", "report")

    def repro(self, *stages: str) -> float:
        """Run `dvc repro`; return its seconds."""
        return self.run("dvc", "repro", *stages)


@dataclass(frozen=True)
class Size:
    """Repo of some cells: seconds to import the models it adds, to compute their cells, and to find nothing to do."""

    models: int
    cells: int
    added: int
    importing: float
    computing: float
    nothing: float

    @property
    def each(self) -> float:
        return (self.importing + self.computing) / self.added

    def row(self, alone: float) -> str:
        return (
            f"| {self.cells} | {self.added} | {self.importing:.1f} | {self.computing:.1f} | {self.each:.2f} "
            f"| {self.each / alone:.2f} | {self.nothing:.1f} |"
        )


def measure_alone(folder: Path, targets: tuple[str, ...]) -> list[float]:
    """Return the seconds of some cells, each by itself."""
    found = []
    for number in range(ALONE):
        (repo := Repo(folder / f"alone-{number}")).declare(range(number, number + 1), (targets[number % len(targets)],))
        found.append(repo.repro("footprint"))
    return found


def measure_growth(folder: Path, models: int, targets: tuple[str, ...]) -> Iterator[Size]:
    """Yield the sizes of one repo that grows to the number of models."""
    repo, before = Repo(folder / "growing"), 0
    for size in [*(size for size in SIZES if size < models), models]:
        repo.declare(range(before, size), targets, "local")
        importing, computing = repo.repro("import"), repo.repro("cells")
        repo.commit_rest(size)
        yield Size(size, size * len(targets), (size - before) * len(targets), importing, computing, repo.repro())
        before = size


@contextmanager
def cluster(folder: Path, count: int) -> Iterator[str]:
    """Yield the address of a Dask scheduler with workers of one thread, each on a core of its own."""
    from distributed import Client

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    folder.mkdir()
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": folder}
    processes = [subprocess.Popen([_HERE / "dask", "scheduler", "--port", str(port), "--no-dashboard"], **quiet)]
    cores = sorted(os.sched_getaffinity(0))
    for number in range(count):
        command = [
            "taskset",
            "-c",
            str(cores[number % len(cores)]),
            _HERE / "dask",
            "worker",
            f"tcp://127.0.0.1:{port}",
        ]
        environment = os.environ | {"PASSFIT_STORE": str(folder / f"store-{number}")}
        options = ["--nthreads", "1", "--no-dashboard", "--local-directory", str(folder)]
        processes.append(subprocess.Popen([*command, *options], env=environment, **quiet))
    try:
        with Client(f"tcp://127.0.0.1:{port}", timeout=60, set_as_default=False) as client:
            client.wait_for_workers(count, timeout=60)
        yield f"dask://127.0.0.1:{port}"
    finally:
        for process in reversed(processes):
            process.terminate()
            process.wait()


def measure_dask(folder: Path, workers: int, models: int, targets: tuple[str, ...]) -> float:
    """Return the cells a minute of a cluster."""
    with cluster(folder / f"dask-{workers}", workers) as address:
        (repo := Repo(folder / f"on-dask-{workers}")).declare(range(models), targets, address)
        repo.repro("import")
        return 60 * models * len(targets) / repo.repro("cells")


def estimate(sizes: list[Size], cells: int) -> tuple[float, float]:
    """Return the hours of that many cells in one repo, and in folders of the largest size measured.

    DVC writes dvc.lock anew after each import: the seconds of one grow with the models that are there.
    """
    first, last = sizes[0], sizes[-1]
    models_before = sizes[-2].models if len(sizes) > 1 else 0
    per_model = last.importing / (last.models - models_before)
    growth = max(0.0, per_model - first.importing / first.models) / ((last.models + models_before) / 2)
    models = cells * last.models / last.cells
    importing = models * first.importing / first.models + growth * models**2 / 2
    computing = cells * last.computing / last.added
    folders = cells / last.cells * sum(each.importing + each.computing for each in sizes)
    return (importing + computing) / 3600, folders / 3600


def page(begun, models: int, targets: tuple[str, ...], alone: list[float], sizes: list[Size], dask: list[float]) -> str:
    """Write the page."""
    mean, last = sum(alone) / len(alone), sizes[-1]
    one, folders = estimate(sizes, FAR)
    whole = sum(size.importing + size.computing for size in sizes)
    return "\n".join(
        [
            "# Many models and targets in one repo\n",
            *begun.lines(".venv/bin/python benchmarks/scale.py"),
            f"\n{models} small networks of 7 to 20 nodes, {len(targets)} targets ({', '.join(targets)}); the default search, `executor: local`. "
            "The repo grows: each row is measured by the cells that it adds, imports included. Nothing to do: `dvc repro` of all "
            "stages once more; for it `profile`, `track` and `report` were committed with empty results.\n",
            f"A cell by itself, in a repo and a store of its own: {mean:.1f} s (mean of {len(alone)}: "
            f"{', '.join(f'{each:.1f}' for each in alone)}).\n",
            "| cells | added | import s | cells s | s a cell | of one by itself | nothing to do, s |",
            "| ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
            *(size.row(mean) for size in sizes),
            f"\nAll {last.cells} cells: {whole:.0f} s, {whole / last.cells:.2f} s a cell, {whole / last.cells / mean:.2f} × a cell by itself.\n",
            f"{FAR:,} cells on this machine, estimated from the last row: {folders:.1f} h in folders of {last.cells} cells, "
            f"{one:.1f} h in one folder, where dvc.lock grows with every import.\n",
            "| Dask workers | cells a minute | of one worker |",
            "| ---: | ---: | ---: |",
            *(f"| {count} | {rate:.1f} | {rate / dask[0]:.2f} |" for count, rate in enumerate(dask, 1)),
            "",
        ]
    )


def main() -> None:
    """Measure, and publish the page of a whole run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=int, default=MODELS)
    parser.add_argument("--targets", type=int, default=len(TARGETS), choices=range(1, len(TARGETS) + 1))
    parser.add_argument("--only-dask", action="store_true", help="print the cells a minute of one and two workers")
    asked = parser.parse_args()
    targets, begun = TARGETS[: asked.targets], head()
    with tempfile.TemporaryDirectory(prefix="passfit-scale-") as name:
        folder = Path(name)

        def on_dask() -> list[float]:
            return [measure_dask(folder, workers, min(ON_DASK, asked.models), targets) for workers in (1, 2)]

        if asked.only_dask:
            one, two = on_dask()
            print(f"Dask: {one:.1f} and {two:.1f} cells a minute, {two / one:.2f} times")
            return
        alone = measure_alone(folder, targets)
        print("alone", alone, flush=True)
        sizes = []
        for size in measure_growth(folder, asked.models, targets):
            sizes.append(size)
            print(size, flush=True)
        dask = on_dask()
    text = page(begun, asked.models, targets, alone, sizes, dask)
    publish("scale", text, whole=(asked.models, asked.targets) == (MODELS, len(TARGETS)))


if __name__ == "__main__":
    main()
