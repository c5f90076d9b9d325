"""Evaluate libraries on boards: over several memories, and on a device on the desk by its runner."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from passfit import api
from passfit.evaluate.open_result import open_result
from passfit.search.settings import SearchSettings
from passfit.targets import Target, get_target, how_to_run
from passfit.targets.memory import Memory

from ..models import model_of

pytestmark = [pytest.mark.slow, pytest.mark.tvm]
BOARD = get_target("mps2-an386")
TVM_DEFAULT = SearchSettings("tvm-default", workers=0, max_extra_compute=None)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a network of two products of 4 KiB, and eight samples of it."""
    place = tmp_path_factory.mktemp("products")
    nodes = [helper.make_node("MatMul", ["x", "u"], ["a"]), helper.make_node("MatMul", ["a", "v"], ["y"])]
    random = np.random.default_rng(0)
    weights = {name: random.normal(size=(64, 64)).astype(np.float32) / 8 for name in "uv"}
    onnx.save(model_of(nodes, {"x": (16, 64)}, {"y": (16, 64)}, weights), place / "products.onnx")
    np.save(place / "x.npy", random.normal(size=(8, 16, 64)).astype(np.float32))
    return place


def agreement(folder: Path, target: Target, emulated: int) -> tuple[str, int, float, bool]:
    (report,) = api.evaluate(
        folder / "products.onnx", [target], folder / "x.npy", search=TVM_DEFAULT,
        settings=api.EvaluateSettings(emulated=emulated),
    )  # fmt: skip
    library = report.library
    return library.how, library.samples, library.agreement, library.within


def test_a_library_over_several_memories_runs_again(folder: Path, tmp_path: Path):
    if how_to_run(BOARD).command is None:
        pytest.skip(how_to_run(BOARD).how)
    memories = (
        Memory("ssram1", "flash", 24 << 10, 0), Memory("qspi", "flash", 1 << 20, 0x200000),
        Memory("ssram23", "ram", 6 << 10, 0x20000000, 0), Memory("psram", "ram", 64 << 10, 0x21000000),
    )  # fmt: skip
    target = replace(BOARD, memories=memories)
    api.compile_model(folder / "products.onnx", target, out=tmp_path, search=TVM_DEFAULT)
    assert set(open_result(tmp_path).library.regions) == {"psram", "qspi"}
    assert agreement(folder, target, 3)[1:] == (3, 1.0, True)


def test_a_device_on_the_desk_runs_samples_by_its_runner(folder: Path):
    emulator = how_to_run(BOARD)
    if emulator.command is None:
        pytest.skip(emulator.how)
    target = replace(BOARD, name="my-board", runner=(*emulator.command, "{elf}"))
    assert agreement(folder, target, 5) == ("the runner of my-board", 5, 1.0, True)
