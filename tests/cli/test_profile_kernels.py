"""Test `passfit profile --kernels`: every step is timed, in the order of the library; refusals."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper

from passfit.targets import get_target, how_to_run
from tests.models import model_of, save

native = pytest.mark.skipif(not how_to_run(get_target("x86-64")).native, reason="the host cannot run x86-64-v3")


@pytest.fixture(autouse=True)
def _briefly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time each library for a moment: how exactly is not said here."""
    monkeypatch.setattr("passfit.tuning.profile_kernels._SECONDS", 0.01)
    monkeypatch.setattr("passfit.tuning.measure.peak._SECONDS", 0.001)


@native
def test_every_kernel_of_the_library_is_timed(passfit: Callable, save_tiny_cnn: Callable[..., Path], tmp_path: Path):
    model = save_tiny_cnn(tmp_path / "cnn.onnx")
    assert passfit("compile", model, "--target", "x86-64", "--out", "out").code == 0
    done = passfit("profile", model, "--kernels", "--sequence", "out/sequence.json", "--out", "k.json")
    assert done.code == 0, done.err
    found = json.loads((tmp_path / "k.json").read_text())
    steps = json.loads((tmp_path / "out" / "plan.json").read_text())["program"]["steps"]
    assert [each["kernel"] for each in found["kernels"]] == [each["kernel"] for each in steps]
    assert all(each["ns"] > 0 and each["bytes"] > 0 for each in found["kernels"])
    assert found["run_ns"] == sum(each["ns"] for each in found["kernels"])
    assert "roofline" in done.out and "k00" in done.out


@native
@pytest.mark.parametrize("rows", [1, 7])
def test_a_product_counts_its_multiply_adds(passfit: Callable, tmp_path: Path, rows: int):
    model = model_of(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        {"x": (rows, 24)},
        {"y": (rows, 40)},
        {"w": np.ones((24, 40), np.float32)},
    )
    file = save(model, tmp_path, "product.onnx")
    assert passfit("profile", file, "--kernels", "--out", "k.json").code == 0
    (kernel,) = json.loads((tmp_path / "k.json").read_text())["kernels"]
    assert rows * 24 * 40 <= kernel["operations"] <= 1.2 * rows * 24 * 40  # zeros are stored, and counted
    assert kernel["bytes"] == 4 * (rows * 24 + 24 * 40 + rows * 40)


def test_a_target_that_does_not_run_natively_is_refused(refused: Callable[..., str], tmp_path: Path):
    bare = '[tool.passfit.targets.bare]\nbase = "rpi4"\nemulator = "qemu-none"\n'
    (tmp_path / "pyproject.toml").write_text(bare)
    said = refused("profile", "none.onnx", "--kernels", "--target", "bare", "--out", "k.json")
    assert "bare" in said and "natively" in said


@native
def test_inputs_are_legal_for_the_file(passfit: Callable, tmp_path: Path):
    weights = {name: np.ones((1, 3, extent), np.float32) for name, extent in (("w", 2), ("r", 3))}
    layer = helper.make_node("RNN", ["x", "w", "r", "", "lengths"], ["y"], hidden_size=3)
    model = model_of([layer], {"x": [5, 2, 2], "lengths": [2]}, ["y"], weights, dtypes={"lengths": TensorProto.INT32})
    save(model, tmp_path, "lengths.onnx")
    assert passfit("profile", "lengths.onnx", "--kernels", "--out", "k.json").code == 0


def test_a_sequence_belongs_to_kernels(refused: Callable[..., str]):
    assert "--kernels" in refused("profile", "none.onnx", "--sequence", "s.json", "--out", "k.json")


@native
def test_a_model_without_kernels_is_refused(refused: Callable[..., str], tmp_path: Path):
    file = save(
        model_of([helper.make_node("Identity", ["x"], ["y"])], {"x": (4,)}, {"y": (4,)}, {}), tmp_path, "same.onnx"
    )
    assert "no kernels" in refused("profile", file, "--kernels", "--out", "k.json")
    assert not (tmp_path / "k.json").exists()
