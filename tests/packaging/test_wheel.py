"""The wheel, installed into an environment of its own, in a repo of someone else.

The dependencies (1.4 GB, minutes) are not installed again: the new environment sees those of the test environment
through a .pth file. passfit itself comes from the wheel: the editable install is hooked in by a .pth file too, and
those are not followed from another one.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
WITHOUT = shutil.ignore_patterns("__pycache__")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """Built from a copy: setuptools leaves build/ behind, and would take stale files from it next time."""
    source = tmp_path_factory.mktemp("source")
    for folder in ("pipeline", "stages"):
        shutil.copytree(ROOT / folder, source / folder, ignore=WITHOUT)
    for file in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / file, source)
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--wheel-dir", source / "dist", source]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = (source / "dist").glob("*.whl")
    return built


@pytest.fixture(scope="module")
def python(wheel, tmp_path_factory) -> Path:
    """The interpreter of a new environment that holds the wheel."""
    home = tmp_path_factory.mktemp("environment") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", home], check=True)
    python = home / "bin" / "python"
    install = ("pip", "--python", python, "install", "-q", "--no-deps", "--no-index", wheel)
    subprocess.run([sys.executable, "-m", *install], check=True)
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    packages = Path(subprocess.run([python, "-c", code], check=True, capture_output=True, text=True).stdout.strip())
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return python


@pytest.fixture(scope="module")
def repo(python, make_repo, save_tiny_cnn, tmp_path_factory):
    repo = make_repo(tmp_path_factory.mktemp("theirs") / "repo", python)
    save_tiny_cnn(repo.root / "m.onnx")
    return repo


def test_the_wheel_holds_every_file_of_the_package(wheel):
    held = set(zipfile.ZipFile(wheel).namelist())
    for folder, inside in (("pipeline", "passfit"), ("stages", "passfit/stages")):
        for file in (ROOT / folder).rglob("*"):
            if file.is_file() and "__pycache__" not in file.parts:
                assert f"{inside}/{file.relative_to(ROOT / folder).as_posix()}" in held


def test_type_checkers_read_the_types_of_the_wheel(wheel):
    assert "passfit/py.typed" in zipfile.ZipFile(wheel).namelist()


def test_the_wheel_holds_nothing_else(wheel):
    tops = {name.split("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"passfit"}


def test_the_environment_uses_the_wheel(repo, python):
    places = repo.run(python, "-c", "import passfit, passfit.stages as s; print(passfit.__file__, s.__file__)").split()
    assert all(Path(place).is_relative_to(python.parents[1]) for place in places), places


def test_a_model_repo_from_init_to_gate(repo):
    repo.passfit("init", "--model", "m.onnx", "--target", "x86-64")
    before = repo.passfit("gate", expect=2)
    assert "Traceback" not in before, "no data never passes"

    names = ("optimize", "compile", "footprint")
    assert repo.repro() == {f"{stage}@m-x86-64" for stage in names} | {
        "toolchain",
        "import@m",
        "profile@m",
        "track",
        "report",
    }
    repo.passfit("gate")

    repo.run("git", "add", "-A")
    repo.run("git", "commit", "-q", "-m", "the first footprints")
    assert "not checked" not in repo.passfit("gate", "--against", "HEAD"), "git keeps the footprints"
