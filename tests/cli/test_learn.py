"""Test `passfit learn`: the file gains the new records only."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from onnx import helper

from ..models import model_of, save
from .conftest import Done

Passfit = Callable[..., Done]
Refused = Callable[..., str]


def _network(folder: Path, name: str, op: str) -> Path:
    """Write a convolution and a function of its result."""
    nodes = [helper.make_node("Conv", ["x", "w"], ["c"]), helper.make_node(op, ["c"], ["y"])]
    model = model_of(nodes, {"x": (1, 2, 6, 6)}, ["y"], {"w": np.ones((3, 2, 3, 3), np.float32)})
    return save(model, folder, f"{name}.onnx")


@pytest.mark.tvm
def test_learning_twice_changes_nothing_and_learning_more_adds(passfit: Passfit, tmp_path: Path):
    first, second = (_network(tmp_path, name, op) for name, op in (("first", "Relu"), ("second", "Sigmoid")))
    file = tmp_path / "knowledge.json"
    done = passfit("learn", first, "--out", file)
    assert done.code == 0 and "first" in done.out and "second" not in done.out
    once = file.read_bytes()
    assert passfit("learn", first, "--out", file).code == 0
    assert file.read_bytes() == once

    done = passfit("learn", second, "--out", file)
    assert done.code == 0 and "first" in done.out and "second" in done.out
    one_by_one = file.read_bytes()
    assert str(tmp_path).encode() not in one_by_one
    file.unlink()
    assert passfit("learn", second, first, "--out", file).code == 0
    assert file.read_bytes() == one_by_one
    assert sorted(path.name for path in tmp_path.iterdir()) == ["first.onnx", "knowledge.json", "second.onnx"]


def test_a_model_that_cannot_be_read_leaves_no_file(refused: Refused, tmp_path: Path):
    (tmp_path / "bad.onnx").write_bytes(b"\x00")
    assert "bad.onnx" in refused("learn", "bad.onnx", "--out", "knowledge.json")


@pytest.mark.parametrize("content", ["", "[]", '{"schema": 0, "catalogue": "0", "models": []}'])
def test_a_file_that_is_no_knowledge_is_left_alone(
    refused: Refused, save_tiny_cnn: Callable[..., Path], tmp_path: Path, content: str
):
    save_tiny_cnn(tmp_path / "m.onnx")
    (tmp_path / "k.json").write_text(content)
    assert "k.json" in refused("learn", "m.onnx", "--out", "k.json")


def test_one_name_cannot_be_given_to_two_models(refused: Refused, tmp_path: Path):
    assert "--name" in refused("learn", "a.onnx", "b.onnx", "--name", "m", "--out", "k.json")


def test_a_result_must_have_a_place(refused: Refused, save_tiny_cnn: Callable[..., Path], tmp_path: Path):
    save_tiny_cnn(tmp_path / "m.onnx")
    assert "nowhere" in refused("learn", "m.onnx", "--out", "nowhere/k.json")
    (tmp_path / "folder").mkdir()
    assert "folder" in refused("learn", "m.onnx", "--out", "folder")
