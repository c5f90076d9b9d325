"""An earlier result in the same folder leaves nothing behind that the new one lacks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from passfit.artifacts.write import replace_result
from passfit.support.digests import digest_of
from passfit.support.result_folder import result_folder


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
    (new := tmp_path / "new").mkdir()
    write_result(new, "libb.a", "b.h", "plan.json")
    replace_result(new, tmp_path)
    new.rmdir()
    assert names(tmp_path) == {"libb.a", "b.h", "plan.json", "search.json", "a.h", "notes.txt"}


def test_a_failure_removes_nothing(tmp_path: Path):
    write_result(tmp_path, "liba.a", "a.h")
    with pytest.raises(KeyError), result_folder(tmp_path, replace_result) as new:
        write_result(new, "libb.a")
        raise KeyError
    assert names(tmp_path) == {"liba.a", "a.h"}


@pytest.mark.fault("two at once", "two results of different names, one folder", "the last one is there, whole")
def test_a_result_that_came_while_another_was_made_is_replaced_too(tmp_path: Path):
    with result_folder(tmp_path, replace_result) as one:
        write_result(one, "liba.a")
        with result_folder(tmp_path, replace_result) as other:
            write_result(other, "libb.a", "b.h")
        assert {"libb.a", "b.h"} <= names(tmp_path)
    assert names(tmp_path) == {"liba.a"}


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"files": 3}', '{"files": {"../kept": "x"}}', "\x00"])
def test_a_manifest_of_nobody_is_left_alone(tmp_path: Path, text: str):
    (out := tmp_path / "out").mkdir()
    (tmp_path / "kept").write_text("mine")
    (out / "manifest.json").write_text(text)
    with result_folder(out, replace_result) as new:
        write_result(new, "liba.a")
    assert names(out) == {"liba.a"} and (tmp_path / "kept").exists()
