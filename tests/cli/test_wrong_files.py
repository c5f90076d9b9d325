"""Test commands on files of the wrong kind: a file in place of a folder, the reverse, links in a circle, other texts."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest


def _folder(path: Path) -> None:
    path.mkdir(parents=True)


def _file(path: Path) -> None:
    path.write_text("")


def _circle(path: Path) -> None:
    path.symlink_to(path.name)


def _latin(path: Path) -> None:
    path.write_bytes(b"gr\xf6\xdfe\n")


@pytest.fixture
def init(refused: Callable[..., str], save_tiny_cnn: Callable[..., Path], tmp_path: Path) -> Callable[..., str]:
    """Return a function that runs `passfit init`, to be refused, in a repo."""
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    (tmp_path / ".dvc").mkdir()
    save_tiny_cnn(tmp_path / "cnn.onnx")
    return lambda *options: refused("init", "--model", "cnn.onnx", "--target", "rpi4", *options)


@pytest.mark.parametrize("make", [_file, _circle])
def test_init_into_what_is_no_folder(init: Callable[..., str], tmp_path: Path, make: Callable[[Path], None]):
    make(tmp_path / "taken")
    assert "'taken'" in init("--folder", "taken")


@pytest.mark.parametrize(("name", "make"), [("dvc.yaml", _folder), (".gitignore", _folder), (".gitignore", _latin)])
def test_init_beside_what_is_no_text(init: Callable[..., str], tmp_path: Path, name: str, make: Callable[[Path], None]):
    make(tmp_path / name)
    assert name in init(*(["--force"] if name == "dvc.yaml" else []))


@pytest.mark.parametrize(
    ("service", "name", "make"),
    [("github", ".github", _file), ("gitlab", ".gitlab/passfit.yml", _folder), ("gitlab", ".gitlab-ci.yml", _latin)],
)
def test_a_file_for_ci_beside_what_is_no_text(
    init: Callable[..., str], refused: Callable[..., str], tmp_path: Path, service: str, name: str, make: Callable[[Path], None]
):  # fmt: skip
    (tmp_path / "params.yaml").write_text("")
    make(tmp_path / name)
    assert name in refused("init", "--ci", service)


@pytest.mark.parametrize(
    "command",
    [
        ["evaluate", "cnn.onnx", "--data", "samples"],
        ["compile", "cnn.onnx", "--target", "x86-64", "--out", "out", "--data", "samples"],
    ],
)
def test_a_link_in_a_circle_among_samples(
    refused: Callable[..., str], save_tiny_cnn: Callable[..., Path], tmp_path: Path, command: list[str]
):
    save_tiny_cnn(tmp_path / "cnn.onnx")
    _folder(tmp_path / "samples")
    _circle(tmp_path / "samples" / "a.npy")
    assert "a.npy" in refused(*command)
