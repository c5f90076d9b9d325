"""Test `passfit tune`: its refusals, and no measurement without time."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from passfit.targets import get_target, how_to_run
from passfit.tuning.database import empty, write_database

Refused = Callable[..., str]


@pytest.fixture
def cnn(save_tiny_cnn: Callable[..., Path], tmp_path: Path) -> Path:
    return save_tiny_cnn(tmp_path / "cnn.onnx")


def test_without_time_the_model_is_not_even_read(passfit: Callable, tmp_path: Path):
    done = passfit("tune", "none.onnx", "--target", "rpi4", "--seconds", "0", "--out", "t.json")
    assert done.code == 0 and "not tuned" in done.out
    assert json.loads((tmp_path / "t.json").read_text())["kernels"] == []


def test_a_target_that_does_not_run_here_is_refused(refused: Refused, cnn: Path, tmp_path: Path):
    bare = '[tool.passfit.targets.bare]\nbase = "rpi4"\nemulator = "qemu-none"\n'
    (tmp_path / "pyproject.toml").write_text(bare)
    said = refused("tune", cnn, "--target", "bare", "--out", "t.json")
    assert "bare" in said and "qemu-none is not installed" in said


@pytest.mark.parametrize("options", [["--seconds", "-1"], ["--trials", "-1"], ["--seconds", "soon"]])
def test_numbers_that_are_none(passfit: Callable, cnn: Path, options: list[str]):
    assert passfit("tune", cnn, "--target", "x86-64", "--out", "t.json", *options).code == 2


def test_a_folder_that_is_not_there(refused: Refused, cnn: Path):
    assert "deep" in refused("tune", cnn, "--target", "x86-64", "--seconds", "0", "--out", "deep/t.json")


def test_a_model_and_a_sequence_that_are_not_there(refused: Refused, cnn: Path):
    assert "none.onnx" in refused("tune", "none.onnx", "--target", "x86-64", "--out", "t.json")
    assert "s.json" in refused("tune", cnn, "--target", "x86-64", "--sequence", "s.json", "--out", "t.json")


@pytest.mark.parametrize("content", [b"", b"not json", b"[]", b"{}", b"\xff\xfe", b'{"format": 99}'])
def test_compiling_with_a_file_that_is_no_tuning(refused: Refused, cnn: Path, tmp_path: Path, content: bytes):
    (tmp_path / "t.json").write_bytes(content)
    said = refused("compile", cnn, "--target", "x86-64", "--tuning", "t.json", "--out", "out")
    assert "t.json" in said


def test_compiling_with_a_tuning_of_another_target(refused: Refused, cnn: Path, tmp_path: Path):
    write_database(empty(get_target("rpi4")), tmp_path / "t.json")
    said = refused("compile", cnn, "--target", "x86-64", "--tuning", "t.json", "--out", "out")
    assert "rpi4" in said and "passfit tune" in said
    assert "none.json" in refused("compile", cnn, "--target", "x86-64", "--tuning", "none.json", "--out", "out")


@pytest.mark.slow
@pytest.mark.skipif(not how_to_run(get_target("x86-64")).native, reason="the host cannot run x86-64-v3")
def test_without_a_sequence_one_is_searched_for_first(passfit: Callable, cnn: Path, tmp_path: Path):
    done = passfit("tune", cnn, "--target", "x86-64", "--seconds", "2", "--trials", "0", "--out", "t.json")
    assert done.code == 0 and json.loads((tmp_path / "t.json").read_text())["kernels"]
