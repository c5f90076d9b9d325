"""The stage `cells` in a repo: the results of the stages that it stands for, on this machine and on a cluster."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from pathlib import Path

import pytest

from ..dask_cluster import running_cluster
from ..faults.processes import LONG, Marked
from ..results import reproducible

pytestmark = pytest.mark.slow

MODELS, TARGETS = ("first", "second"), ("x86-64", "mps2-an386")
PAIRS = [(model, target) for model in MODELS for target in TARGETS]


@pytest.fixture(scope="module")
def single(tmp_path_factory, make_repo, save_tiny_cnn):
    """A repo whose cells the stages of each made."""
    repo = make_repo(tmp_path_factory.mktemp("single") / "repo")
    for number, model in enumerate(MODELS):
        save_tiny_cnn(repo.root / f"{model}.onnx", channels=4 + 4 * number)
    (repo.root / "LICENSE").write_text("SPDX-License-Identifier: MIT\n")
    words = [word for model in MODELS for word in ("--model", f"{model}.onnx")]
    repo.passfit("init", *words, *(word for target in TARGETS for word in ("--target", target)))
    repo.shorten_search()
    repo.repro("footprint")
    return repo


@pytest.fixture
def asking(single, tmp_path):
    """The same repo with the stage cells in place of these, and none of their results."""
    shutil.copytree(single.root, tmp_path / "repo", symlinks=True)
    repo = type(single)(tmp_path / "repo", single.python)
    for folder in ("out/optimize", "out/compile", "footprints"):
        shutil.rmtree(repo.root / folder)
    repo.edit("params.yaml", "executor: null", "executor: local:2")
    repo.passfit("add", "--target", TARGETS[0])
    return repo


def cells_of(repo) -> Marked:
    """Start the stage by itself; it may read what searches of other tests kept."""
    return Marked(("passfit.stages.cells",), repo.root, environment={"PASSFIT_STORE": os.environ["PASSFIT_STORE"]})


def results(root: Path) -> dict[str, dict[str, bytes] | bytes]:
    found: dict[str, dict[str, bytes] | bytes] = {}
    for model, target in PAIRS:
        for step in ("optimize", "compile"):
            folder = Path("out", step, model, target)
            found[folder.as_posix()] = reproducible(
                root / folder, without={"footprint.json"} if step == "compile" else ()
            )
        found[f"{model} @ {target}"] = (root / "footprints" / model / f"{target}.json").read_bytes()
    return found


def test_cells_have_the_results_of_the_stages_that_they_stand_for(single, asking):
    assert asking.repro("cells") == {"toolchain", "cells"}
    assert results(asking.root) == results(single.root)
    assert asking.repro("cells") == {"toolchain"}
    assert "all 20 checks hold" in asking.passfit("gate")
    metrics = json.loads(asking.run(asking.python, "-m", "dvc", "metrics", "show", "--json"))[""]["data"]
    assert metrics.keys() == {f"footprints/{model}/{target}.json" for model, target in PAIRS}
    # what one cell reads changes that cell alone
    asking.edit(
        "params.yaml",
        "mps2-an386: {budget: {ram: null",
        "mps2-an386: {budgets: {first: {ram: 1MiB}}, budget: {ram: null",
    )
    assert "1 of 4 cells computed" in asking.run(asking.python, "-m", "dvc", "repro", "cells")


@pytest.mark.fault(
    "SIGKILL or Ctrl-C", "during the stage cells, with some cells done", "these stay; the next run computes the others"
)
@pytest.mark.parametrize("number", [signal.SIGKILL, pytest.param(signal.SIGINT, marks=pytest.mark.nightly)])
def test_cells_that_are_done_outlive_the_stage(single, asking, number: int):
    records = asking.root / "out" / "cells"
    running = cells_of(asking)
    end = time.monotonic() + 10 * LONG
    done = []
    while time.monotonic() < end and not done:
        done = [path for path in records.glob("*/*.json") if "compile" in json.loads(path.read_text())]
        time.sleep(0.05)
    running.process.send_signal(number)
    running.end()
    assert running.survivors() == [] and done
    left = {path: path.read_bytes() for path in done}
    code, out, said = cells_of(asking).end()
    assert code == 0, said
    assert int(out.rpartition("\n")[0].rpartition("\n")[2].split()[0]) < len(PAIRS)
    assert {path: path.read_bytes() for path in left} == left and results(asking.root) == results(single.root)


@pytest.mark.fault(
    "Dask", "SIGKILL of a worker that computes cells", "its cells are computed once more; the same bytes"
)
def test_a_worker_that_is_lost_costs_its_cells_once_more(single, asking, tmp_path):
    with running_cluster(tmp_path, threads=1) as (address, workers):
        asking.edit("params.yaml", "executor: local:2", f"executor: {address}")
        running = cells_of(asking)
        _kill_one_that_computes(workers)
        code, out, said = running.end()
    assert code == 0 and "4 of 4 cells computed" in out, said
    assert results(asking.root) == results(single.root)


def _kill_one_that_computes(workers) -> None:
    """Kill the nanny of a worker, and this, once it has started a process for a cell."""
    import psutil

    end = time.monotonic() + LONG
    while time.monotonic() < end:
        for worker in workers:
            family = psutil.Process(worker.pid).children(recursive=True)
            if any("passfit.stages.cell" in each.cmdline() for each in family if each.is_running()):
                for each in (psutil.Process(worker.pid), *family):
                    each.kill()
                return
        time.sleep(0.3)  # a cell takes seconds, and so does a look at all processes, of the processors
    raise AssertionError("no worker computes a cell")
