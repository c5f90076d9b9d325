"""Test `passfit quantize`: its table, its files, and its refusals with the next step."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

Refused = Callable[..., str]


@pytest.fixture
def cnn(save_tiny_cnn: Callable[..., Path], tmp_path: Path) -> Path:
    """Save a model and samples of its form."""
    import onnx

    file = save_tiny_cnn(tmp_path / "cnn.onnx")
    port = onnx.load(file).graph.input[0]
    shape = [dim.dim_value for dim in port.type.tensor_type.shape.dim]
    values = np.random.default_rng(0).standard_normal((20, *shape)).astype(np.float32)
    np.savez(tmp_path / "data.npz", **{port.name: values})
    return file


def test_bad_requests_are_refused(refused: Refused, cnn: Path, tmp_path: Path):
    (tmp_path / "bad.onnx").write_bytes(b"not a model\n")
    asked = ("quantize", cnn, "--out", "q.onnx", "--target", "none")
    assert "ranges of random inputs would be wrong. Give --data" in refused(*asked)
    assert "missing.npz" in refused(*asked, "--data", "missing.npz")
    assert "bad.onnx" in refused("quantize", "bad.onnx", "--data", "data.npz", "--out", "q.onnx")
    assert "int8-weights" in refused(*asked, "--data", "data.npz", "--form", "int8-weight")
    assert "percentile" in refused(*asked, "--data", "data.npz", "--method", "percent")
    assert "there-is-none" in refused(*asked, "--data", "data.npz", "--metric", "there-is-none")
    assert "is the model itself" in refused("quantize", cnn, "--data", "data.npz", "--out", cnn)
    assert "is a folder" in refused("quantize", cnn, "--data", "data.npz", "--out", ".")
    assert "stm32f447" in refused("quantize", cnn, "--data", "data.npz", "--out", "q.onnx", "--target", "stm32f447")
    assert "Add --allow-lossy" in refused("optimize", cnn, "--target", "rpi4", "--data", "data.npz", "--out", "o")


@pytest.mark.tvm
def test_the_table_names_the_point_taken_and_the_files_are_there(passfit: Callable, cnn: Path, tmp_path: Path):
    done = passfit(
        "quantize", cnn, "--data", "data.npz", "--out", "q.onnx", "--io", "int8", "--max-accuracy-loss", "0.5"
    )
    assert done.code == 0 and "→" in done.out and "ram and flash predicted for mps2-an386" in done.out
    assert "wrote q.onnx: compile it with --io int8" in done.out
    assert all((tmp_path / name).is_file() for name in ("q.onnx", "quantize.json", "curve.svg"))
