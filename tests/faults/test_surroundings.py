"""Surround a compilation with another machine, a full or read-only disk, a second process: same bytes, or one line."""

from __future__ import annotations

import ctypes
import os
import resource
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from ..models import NodeBuilder, save
from ..results import reproducible
from .processes import Marked, files

pytestmark = pytest.mark.slow
Model = Callable[..., Path]
#: PR_CAPBSET_DROP, CAP_DAC_OVERRIDE: permissions bind root from the next program on
_DROP_DAC_OVERRIDE = (24, 1, 0, 0, 0)
#: jumps by days and years at each look, back too
_CLOCK = """
import itertools, time
now, jumps = time.time, itertools.cycle((0, 86400, -86400, 1e8, -1e9))
time.time = lambda: now() + next(jumps)
time.time_ns = lambda: int(1e9 * time.time())
"""
_EACH = {
    "locale, time zone, hash seed, width": {"LC_ALL": "tr_TR.UTF-8", "LANG": "tr_TR", "TZ": "Pacific/Kiritimati", "PYTHONHASHSEED": "1", "COLUMNS": "30"},
    "an empty PATH, no home": {"PATH": "/nowhere", "HOME": "", "XDG_CACHE_HOME": "", "PYTHONHASHSEED": "2"},
    "a clock that jumps": {"PYTHONPATH": "{folder}/clock"},
}  # fmt: skip
_SURROUNDINGS = {"all at once": {key: value for each in _EACH.values() for key, value in each.items()}} | _EACH


def _by_day(cases: Iterable[tuple], *chosen: tuple) -> list[object]:
    """Leave all cases but the chosen ones to the night."""
    return [pytest.param(*each, marks=() if each in chosen else pytest.mark.nightly) for each in cases]


def compiled(folder: Path, out: str = "out", model: str = "net.onnx", **how: object) -> Marked:
    words = ("passfit.cli", "compile", str(folder / model), "--target", "x86-64", "--strategy", "greedy", "--out", out)
    return Marked(words, folder, **how)  # type: ignore[arg-type]


def refusal(said: str) -> str:
    """Return the one line that refuses; a slow machine has lines of progress before it."""
    (line,) = (line for line in said.splitlines() if line.startswith("passfit: "))
    assert said.endswith(f"{line}\n"), said
    return line


@pytest.fixture(scope="module")
def network(save_tiny_cnn: Model, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compile a network without a fault; return the folder of the model, and of `out`."""
    folder = tmp_path_factory.mktemp("network")
    save_tiny_cnn(folder / "net.onnx")
    code, _, said = compiled(folder).end()
    assert code == 0, said
    return folder


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compile two layers, which takes half the time, in the same way."""
    folder = tmp_path_factory.mktemp("whole")
    build = NodeBuilder()
    hidden = build.node("Relu", build.node("MatMul", "x", build.weight(16, 8)))
    save(build.model((1, 16), build.node("MatMul", hidden, build.weight(8, 4))), folder, "net.onnx")
    code, _, said = compiled(folder).end()
    assert code == 0, said
    return folder


@pytest.fixture
def folder(whole: Path, tmp_path: Path) -> Path:
    """Return another folder with the model."""
    return _copy(whole, tmp_path)


def _copy(whole: Path, to: Path) -> Path:
    (to / "work").mkdir()
    (to / "work" / "net.onnx").write_bytes((whole / "net.onnx").read_bytes())
    return to / "work"


@pytest.mark.fault(
    "another machine", "locale, time zone, hash seed, width, PATH, home, folder; a clock that jumps by years", "the same bytes"
)  # fmt: skip
@pytest.mark.parametrize("name", _by_day(zip(_SURROUNDINGS), ("all at once",)))
def test_surroundings_change_no_byte(network: Path, tmp_path: Path, name: str) -> None:
    folder = _copy(network, tmp_path)
    (folder / "clock").mkdir()
    (folder / "clock" / "sitecustomize.py").write_text(_CLOCK)
    environment = {key: value.format(folder=folder) for key, value in _SURROUNDINGS[name].items()}
    code, _, said = compiled(folder, environment=environment).end()
    assert code == 0, said
    assert reproducible(folder / "out") == reproducible(network / "out")


@pytest.mark.fault(
    "full disk", "files end at a size (RLIMIT_FSIZE), from none to that of the library",
    "exit code 2 with one line, and results stay as they were; or the same bytes",
)  # fmt: skip
@pytest.mark.parametrize("size", _by_day(zip((0, 1000, 5000, 20000, 100000)), (0,), (5000,), (100000,)))
def test_a_full_disk_is_one_line_and_leaves_earlier_results(whole: Path, folder: Path, size: int) -> None:
    (folder / "out").mkdir()
    (folder / "out" / "mine").write_text("mine")
    before = files(folder)

    def fill() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    code, _, said = compiled(folder, before=fill).end()
    assert "Traceback" not in said
    if code == 0:
        (folder / "out" / "mine").unlink()
        assert reproducible(folder / "out") == reproducible(whole / "out")
    else:
        assert code == 2 and refusal(said)
        assert files(folder) == before


@pytest.mark.fault(
    "full disk", "a file system of 16 KiB to 1 MiB for the folder of results, another for TMPDIR",
    "exit code 2 with one line, and nothing is left; or the same bytes",
)  # fmt: skip
@pytest.mark.parametrize(
    ("what", "size"), _by_day([("out", 16), ("out", 128), ("out", 1024), ("tmp", 128)], ("out", 16), ("tmp", 128))
)
def test_a_full_file_system_is_one_line(whole: Path, folder: Path, what: str, size: int) -> None:
    (place := folder / what).mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}k", "tmpfs", place], capture_output=True).returncode:
        pytest.skip("no file system can be mounted here")
    try:
        code, _, said = compiled(folder, environment={"TMPDIR": str(place)} if what == "tmp" else {}).end()
        assert "Traceback" not in said
        if code == 0:
            assert reproducible(folder / "out") == reproducible(whole / "out")
        else:
            assert code == 2 and refusal(said) and files(place) == {}
    finally:
        subprocess.run(["umount", place], check=True)


def _bound_by_permissions() -> None:
    if os.geteuid() == 0:
        ctypes.CDLL(None).prctl(*_DROP_DAC_OVERRIDE)


@pytest.mark.fault(
    "read-only folders", "home and cache, or the folder of results, without the permission to write",
    "the same bytes without a store; exit code 2 with one line, before any work is done",
)  # fmt: skip
@pytest.mark.parametrize("what", ["home", "out"])
def test_read_only_folders(whole: Path, folder: Path, what: str) -> None:
    for name in ("home", "out"):
        (folder / name).mkdir()
    (folder / what).chmod(0o555)
    environment = {"HOME": str(folder / "home"), "XDG_CACHE_HOME": "", "PASSFIT_STORE": ""}
    code, _, said = compiled(folder, environment=environment, before=_bound_by_permissions).end()
    if what == "home":
        assert code == 0, said
        assert reproducible(folder / "out") == reproducible(whole / "out")
    else:
        assert code == 2 and refusal(said).startswith("passfit: 'out' cannot be written")
        assert files(folder / "out") == {}
        assert files(folder / "home") == {}


@pytest.mark.fault(
    "two at once", "two compilations of one model into one folder, with one store", "both end well, with the same bytes"
)
def test_two_compilations_into_one_folder(whole: Path, folder: Path) -> None:
    both = [compiled(folder) for _ in range(2)]
    assert [each.end()[0] for each in both] == [0, 0]
    assert reproducible(folder / "out") == reproducible(whole / "out")


@pytest.mark.fault(
    "two models, one folder", "two compilations of different names into one folder, at once", "the folder holds one result, whole"
)  # fmt: skip
def test_a_folder_holds_the_files_of_one_result(whole: Path, folder: Path) -> None:
    (folder / "other.onnx").write_bytes((folder / "net.onnx").read_bytes())
    (folder / "out").mkdir()
    (folder / "out" / "mine").write_text("mine")
    both = [compiled(folder, model=model) for model in ("net.onnx", "other.onnx")]
    assert [each.end()[0] for each in both] == [0, 0]
    names = set(files(folder / "out")) - {"mine"}
    assert names in [{file.replace("net", name) for file in files(whole / "out")} for name in ("net", "other")]
    assert (folder / "out" / "mine").exists()
