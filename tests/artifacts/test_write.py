"""An earlier result in the same folder leaves nothing behind that the new one lacks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from passfit.artifacts.write import earlier_removed
from passfit.support.digests import digest_of


def write_result(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).write_text(name)
    (folder / "manifest.json").write_text(json.dumps({"files": {name: digest_of(folder / name) for name in names}}))


def names(folder: Path) -> set[str]:
    return {file.name for file in folder.iterdir()} - {"manifest.json"}


def test_a_library_of_another_name_goes_and_what_is_not_its_own_stays(tmp_path: Path):
    write_result(tmp_path, "liba.a", "a.h", "plan.json", "a.elf", "search.json")
    (tmp_path / "a.h").write_text("edited")
    (tmp_path / "notes.txt").write_text("mine")
    with earlier_removed(tmp_path):
        write_result(tmp_path, "libb.a", "b.h", "plan.json")
    assert names(tmp_path) == {"libb.a", "b.h", "plan.json", "search.json", "a.h", "notes.txt"}


def test_a_failure_removes_nothing(tmp_path: Path):
    write_result(tmp_path, "liba.a", "a.h")
    with pytest.raises(KeyError), earlier_removed(tmp_path):
        raise KeyError
    assert names(tmp_path) == {"liba.a", "a.h"}


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"files": 3}', '{"files": {"../kept": "x"}}', "\x00"])
def test_a_manifest_of_nobody_is_left_alone(tmp_path: Path, text: str):
    (out := tmp_path / "out").mkdir()
    (tmp_path / "kept").write_text("mine")
    (out / "manifest.json").write_text(text)
    with earlier_removed(out):
        write_result(out, "liba.a")
    assert names(out) == {"liba.a"} and (tmp_path / "kept").exists()
