"""Check that a source is a file, or one sentence about the reason why not."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper

from passfit.errors import ModelError, OutputError
from passfit.frontend.canonical.read_onnx import read_model
from passfit.frontend.source import archive
from passfit.frontend.source.cache import Cache
from passfit.frontend.source.side_files import side_files
from passfit.frontend.source.source import PypiSource, parse_pypi, resolve_source

from ...models import model_of, save
from .test_side_files import save_split

MODEL = model_of([helper.make_node("Relu", ["x"], ["y"])], {"x": [1, 2]}, ["y"]).SerializeToString()
SOURCE = "pypi:some-models==1.0!some_models/net.onnx"


def test_a_path_is_its_own_source(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    path.write_bytes(MODEL)
    assert resolve_source(str(path)) == path


@pytest.mark.parametrize(
    ("name", "said"), [("nett.onnx", "Did you mean '/.*/net.onnx'"), ("empty.onnx", "empty"), (".", "directory")]
)
def test_a_path_that_is_no_model_file_is_refused(tmp_path: Path, name: str, said: str) -> None:
    (tmp_path / "net.onnx").write_bytes(MODEL)
    (tmp_path / "empty.onnx").touch()
    with pytest.raises(ModelError, match=said):
        resolve_source(str(tmp_path / name))


def test_a_near_name_is_a_path_that_leads_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "net.onnx").write_bytes(MODEL)
    (tmp_path / "models" / "other.onnx").write_bytes(MODEL)
    (tmp_path / "nett.onnx").write_bytes(MODEL)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ModelError, match="Did you mean 'models/net.onnx'"):
        resolve_source("models/nett.onnx")
    with pytest.raises(ModelError, match="models/net.onnx, models/other.onnx"):
        resolve_source("models/q.bin")


def test_what_is_no_regular_file_is_not_suggested(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.onnx")
    (tmp_path / "loop.onnx").symlink_to("loop.onnx")
    for name, said in (
        ("pipe.onnx", "not a regular file"),
        ("loop.onnx", "symbolic links"),
        ("n" * 300, "too long"),
        ("a\0b", "null"),
    ):
        with pytest.raises(ModelError, match=said):
            resolve_source(str(tmp_path / name))
    with pytest.raises(ModelError, match="home"):
        resolve_source("~nobody-of-this-name/net.onnx")


@given(
    st.from_regex(r"[a-z][a-z0-9]{0,8}(-[a-z0-9]{1,4})?", fullmatch=True),
    st.from_regex(r"[0-9]{1,2}(\.[0-9]{1,2}){0,3}", fullmatch=True),
    st.from_regex(r"[a-z_]{1,6}(/[a-z_]{1,6}){0,2}\.onnx", fullmatch=True),
)
def test_sources_round_trip(package: str, version: str, member: str) -> None:
    source = PypiSource(package, version, member)
    assert parse_pypi(str(source)) == source


@pytest.mark.parametrize(
    "source",
    [
        "pypi:", "pypi:a", "pypi:a==1", "pypi:a!b.onnx", "pypi:a==1!", "pypi:-r==1!b", "pypi:a b==1!c",
        "pypi:a==1;c!b", "pypi:a==--x!b", "pypi:a==1!/etc/x", "pypi:a==1!../x", "pypi:a==1!b/../../x",
    ],
)  # fmt: skip
def test_malformed_sources_are_refused_before_anything_runs(source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("a process was started"))
    with pytest.raises(ModelError, match="PACKAGE==VERSION"):
        resolve_source(source)


def _wheel(folder: Path, members: dict[str, bytes]) -> None:
    with zipfile.ZipFile(folder / "some_models-1.0-py3-none-any.whl", "w") as opened:
        for name, content in members.items():
            opened.writestr(name, content)


def _sdist(folder: Path, members: dict[str, bytes]) -> None:
    with tarfile.open(folder / "some_models-1.0.tar.gz", "w:gz") as opened:
        for name, content in members.items():
            info = tarfile.TarInfo(f"some_models-1.0/{name}")
            info.size = len(content)
            opened.addfile(info, io.BytesIO(content))


class FakePip:
    """Stand-in for pip: writes archives, counts its calls."""

    def __init__(self, wheel: dict[str, bytes] | None, sdist: dict[str, bytes] | None, stderr: str = ""):
        self.wheel, self.sdist, self.stderr, self.calls = wheel, sdist, stderr, 0

    def __call__(self, command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        self.calls += 1
        assert isinstance(command, list) and "--no-deps" in command
        folder = Path(command[command.index("--dest") + 1])
        members, write = (self.wheel, _wheel) if "--only-binary" in command else (self.sdist, _sdist)
        if members is None:
            return subprocess.CompletedProcess(command, 1, "", self.stderr)
        write(folder, members)
        return subprocess.CompletedProcess(command, 0, "", "")


def _resolve(pip: FakePip, monkeypatch: pytest.MonkeyPatch, cache: Path, source: str = SOURCE) -> Path:
    monkeypatch.setattr(archive, "run", pip)
    return resolve_source(source, cache)


def test_only_the_member_is_taken_and_only_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pip = FakePip({"some_models/net.onnx": MODEL, "../evil.py": b"x"}, None)
    path = _resolve(pip, monkeypatch, tmp_path / "cache")
    assert path.read_bytes() == MODEL
    assert _resolve(pip, monkeypatch, tmp_path / "cache") == path
    assert pip.calls == 1
    kept = {p.suffix for p in (tmp_path / "cache").iterdir() if p.name != ".lock"}
    assert kept == {".onnx", ".json"} and not (tmp_path / "evil.py").exists()


def test_side_files_come_along_and_one_that_is_missing_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = save_split(tmp_path / "net.onnx", 3.0, "weights/w.bin")
    members = {
        "some_models/net.onnx": model.read_bytes(),
        "some_models/weights/w.bin": (tmp_path / "weights/w.bin").read_bytes(),
    }
    for archives in ((members, None), ({"a": b"x"}, members)):
        path = _resolve(FakePip(*archives), monkeypatch, tmp_path / f"cache{archives[1] is None}")
        assert side_files(path) == () and read_model(path) == read_model(model)
    cache = tmp_path / "cacheTrue"
    (cache / "index.json").write_text(json.dumps({SOURCE: hashlib.sha256(model.read_bytes()).hexdigest()}))
    shutil.copy(model, cache / f"{hashlib.sha256(model.read_bytes()).hexdigest()}.onnx")  # as an older passfit kept it
    assert _resolve(FakePip(members, None), monkeypatch, cache).name == path.name
    del members["some_models/weights/w.bin"]
    with pytest.raises(
        ModelError,
        match=r"'some_models/net.onnx' keeps weights in 'some_models/weights/w.bin', which its package lacks",
    ):
        _resolve(FakePip(members, None), monkeypatch, tmp_path / "cache")


@pytest.mark.parametrize("member", ["some_models/net.onnx"])
def test_what_the_wheel_lacks_is_taken_from_the_sdist(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, member: str
) -> None:
    pip = FakePip({"some_models/__init__.py": b"x"}, {member: MODEL})
    assert _resolve(pip, monkeypatch, tmp_path).read_bytes() == MODEL


@pytest.mark.fault("the store", "a damaged download", "it is fetched again")
def test_a_damaged_file_is_fetched_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pip = FakePip({"some_models/net.onnx": MODEL}, None)
    _resolve(pip, monkeypatch, tmp_path).write_bytes(b"damaged")
    assert _resolve(pip, monkeypatch, tmp_path).read_bytes() == MODEL
    assert pip.calls == 2


@pytest.mark.parametrize(
    ("pip", "said"),
    [
        (FakePip({"some_models/nett.onnx": MODEL}, {"a": b"x"}), "Did you mean 'some_models/nett.onnx'"),
        (FakePip({"a.py": b"x"}, {"a.py": b"x"}), "holds .onnx"),
        (FakePip(None, None, "ERROR: No matching distribution found for some-models==1.0"), "There is no some-models"),
        (FakePip(None, None, "WARNING: a\nERROR: the network is down\n"), "the network is down"),
        (FakePip({"some_models/net.onnx": b""}, None), "is empty"),
    ],
)
@pytest.mark.fault(
    "the network", "pip fails, or the package does not exist", "exit code 2 with its message, nothing is left"
)
def test_what_pip_cannot_give_is_refused_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pip: FakePip, said: str
) -> None:
    with pytest.raises(ModelError, match=said):
        _resolve(pip, monkeypatch, tmp_path)
    assert [p.name for p in tmp_path.iterdir() if p.name != ".lock"] == []


def test_a_cache_that_cannot_be_used_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(OutputError, match="PASSFIT_CACHE"):
        Cache(tmp_path / "file" / "cache").get("s", lambda path: None)


@pytest.mark.slow
def test_a_real_package_gives_its_model(tmp_path: Path) -> None:
    path = resolve_source("pypi:rapidocr-onnxruntime==1.4.4!rapidocr_onnxruntime/models/"
                          "ch_ppocr_mobile_v2.0_cls_infer.onnx", tmp_path)  # fmt: skip
    assert path.stat().st_size == 585532


def test_saving_helper_writes_what_is_read(tmp_path: Path) -> None:
    path = save(model_of([helper.make_node("Relu", ["x"], ["y"])], {"x": [1]}, ["y"]), tmp_path)
    assert resolve_source(str(path)) == path
