"""The stage `cells` computes what is stale, each cell by itself; failures and deaths are those of one cell."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from passfit.artifacts.failures import record_failure, why_failed
from passfit.artifacts.places import cell_record, kept_footprint
from passfit.errors import PassfitError
from passfit.params.params import Params, load_params
from passfit.stages import _processes
from passfit.stages import cells as stage
from passfit.stages._common import write_json
from passfit.stages.cell import is_stale, steps
from passfit.stages.cells import cells, group_cells

MODELS, TARGETS = ("a", "b"), ("x86-64", "rpi4")
PAIRS = [(model, target) for model in MODELS for target in TARGETS]
PARAMS = "models: {a: {source: a.onnx}, b: {source: b.onnx}}\ntargets: {x86-64: , rpi4: }\n"


class Processes:
    """Processes that write the results of cells, or fail or die at some of them."""

    def __init__(self, fail: Sequence[str] = (), die: Sequence[str] = ()):
        self.cells: list[tuple[str, str]] = []
        self._fail, self._die = fail, list(die)

    def __call__(self, cells: Sequence[tuple[str, str]]) -> subprocess.CompletedProcess[str]:
        code = 0
        for model, target in cells:
            self.cells.append((model, target))
            if f"{model}@{target}" in self._die:
                self._die.remove(f"{model}@{target}")
                return subprocess.CompletedProcess([], -signal.SIGKILL, "", "")
            if f"{model}@{target}" in self._fail:
                record_failure(Path(), "optimize", "no sequence", model, target)
                code = 2
                continue
            for step in steps(model, target):
                write_json(step.writes / "sequence.json", {"of": [model, target]})
            write_json(cell_record(model, target), {step.name: step.state() for step in steps(model, target)})
        return subprocess.CompletedProcess([], code, None, "")


@pytest.fixture
def params(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Params:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "params.yaml").write_text(PARAMS)

    def footprint(params: Params, model: str, target: str, catalogue: object = None) -> str:
        write_json(kept_footprint(model, target), {})
        return f"{model} @ {target}: fits"

    monkeypatch.setattr(stage, "footprint", footprint)
    return load_params(Path("params.yaml"))


def ran(params: Params, processes: Processes, monkeypatch: pytest.MonkeyPatch) -> Processes:
    monkeypatch.setattr(stage, "here", processes)
    cells(params)
    return processes


def test_only_stale_cells_are_computed(params: Params, monkeypatch: pytest.MonkeyPatch):
    assert sorted(ran(params, Processes(), monkeypatch).cells) == sorted(PAIRS)
    assert ran(params, Processes(), monkeypatch).cells == []
    write_json(Path("out/settings/a/rpi4/search.json"), {"seed": 1})
    assert ran(params, Processes(), monkeypatch).cells == [("a", "rpi4")]
    Path("out/compile/b/x86-64/sequence.json").write_text("{}")  # changed by hand
    assert ran(params, Processes(), monkeypatch).cells == [("b", "x86-64")]
    write_json(Path("out/models/b/origin.json"), {})
    assert sorted(ran(params, Processes(), monkeypatch).cells) == [("b", "rpi4"), ("b", "x86-64")]
    write_json(Path("out/toolchain.json"), {})
    assert sorted(ran(params, Processes(), monkeypatch).cells) == sorted(PAIRS)


def test_a_cell_that_fails_is_named_and_the_others_are_kept(params: Params, monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(PassfitError, match="1 of 4 cells failed: a @ rpi4.") as refused:
        ran(params, Processes(fail=["a@rpi4"]), monkeypatch)
    assert "computes these alone" in str(refused.value)
    assert [cell for cell in PAIRS if is_stale(*cell)] == [("a", "rpi4")]
    assert {cell for cell in PAIRS if kept_footprint(*cell).is_file()} == {*PAIRS} - {("a", "rpi4")}
    again = ran(params, Processes(), monkeypatch)
    assert again.cells == [("a", "rpi4")] and why_failed(Path(), "a", "rpi4") is None


@pytest.mark.fault(
    "a process of the stage cells", "it dies at a cell", "its cell is computed once more, then left out and named"
)
@pytest.mark.parametrize("times", [1, 2])
def test_a_process_that_dies_costs_its_cell_once_more(params: Params, monkeypatch: pytest.MonkeyPatch, times: int):
    processes = Processes(die=["a@x86-64"] * times)
    if times == 1:
        ran(params, processes, monkeypatch)
    else:
        with pytest.raises(PassfitError, match="1 of 4 cells failed: a @ x86-64."):
            ran(params, processes, monkeypatch)
        assert "SIGKILL" in str(why_failed(Path(), "a", "x86-64"))
    assert [cell for cell in PAIRS if is_stale(*cell)] == ([("a", "x86-64")] if times == 2 else [])
    assert processes.cells.count(("a", "x86-64")) == 2


def test_results_of_cells_that_are_declared_no_more_are_removed(params: Params, monkeypatch: pytest.MonkeyPatch):
    ran(params, Processes(), monkeypatch)
    Path("params.yaml").write_text(PARAMS.replace(", b: {source: b.onnx}", ""))
    ran(load_params(Path("params.yaml")), Processes(), monkeypatch)
    for folder in ("out/optimize", "out/compile", "out/cells"):
        assert [path.name for path in Path(folder).iterdir() if any(path.iterdir())] == ["a"]
    assert not kept_footprint("b", "rpi4").exists() and kept_footprint("a", "rpi4").exists()


def test_a_worker_elsewhere_has_the_files_that_cells_read_and_returns_those_that_they_write(tmp_path, monkeypatch):
    """A repo in a subfolder has models, and their licence, beside it."""
    (repo := tmp_path / "repo").mkdir()
    monkeypatch.chdir(repo)
    Path("params.yaml").write_text(PARAMS.replace("a.onnx", "../models/a.onnx") + "search: {knowledge: k.json}\n")
    read = {
        "../models/LICENSE", "params.yaml", "k.json", "out/toolchain.json", "out/models/a/model.onnx", "out/models/a/origin.json",
        "out/settings/a/rpi4/search.json", "out/settings/a/rpi4/compile.json",
    }  # fmt: skip
    for name in (*read, "../models/a.onnx", "out/models/b/model.onnx", "out/settings/a/x86-64/search.json"):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        if name != "params.yaml":
            Path(name).write_text(name)
    files = _processes._read(Path(), _processes._needed(load_params(Path("params.yaml")), [("a", "rpi4")]))
    assert files == {name: Path(name).read_bytes() for name in read}

    def here(cells: object, folder: Path, stdout: int) -> subprocess.CompletedProcess[str]:
        assert {name: (folder / name).read_bytes() for name in files} == files
        write_json(folder / "out/compile/a/rpi4/manifest.json", {})
        write_json(folder / "out/cells/a/rpi4.json", {})
        write_json(folder / "other.json", {})
        return subprocess.CompletedProcess([], 0, "", "")

    monkeypatch.setattr(_processes, "here", here)
    _, found = _processes._elsewhere(files, [("a", "rpi4")])
    assert found.keys() == {"out/compile/a/rpi4/manifest.json", "out/cells/a/rpi4.json"}


@given(
    st.lists(st.tuples(st.sampled_from("abcde"), st.sampled_from("xyz")), unique=True),
    st.integers(1, 9),
    st.integers(1, 9),
)
def test_groups_hold_every_cell_once_in_order_and_get_smaller(cells: list[tuple[str, str]], processes: int, most: int):
    groups = group_cells(cells, processes, most)
    sizes = [len(group) for group in groups]
    assert [cell for group in groups for cell in group] == cells
    assert sizes == sorted(sizes, reverse=True) and max(sizes, default=1) <= most
    assert len(groups) >= min(processes, len(cells))


@given(st.lists(st.integers(0, 6), max_size=8), st.integers(1, 4))
def test_a_worker_of_a_cluster_gets_whole_models_and_its_turn(counts: list[int], workers: int):
    cells = [(f"m{model}", f"t{target}") for model, count in enumerate(counts) for target in range(count)]
    names = [f"w{number}" for number in range(workers)]
    dealt = _processes.deal_cells(cells, names)
    assert sorted(dealt) == sorted(cells)
    for model, _ in cells:
        own = [cell for cell in dealt if cell[0] == model]
        assert own == [cell for cell in cells if cell[0] == model] and len({dealt[cell] for cell in own}) == 1
    order = list(dealt.values())
    for place, name in enumerate(order):  # before it, each other worker with cells left had as many turns
        turns = order[:place].count(name)
        assert all(order[:place].count(other) >= turns for other in names if order[place:].count(other))
