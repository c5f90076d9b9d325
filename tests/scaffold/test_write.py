from __future__ import annotations

import pytest

from passfit.errors import OutputError
from passfit.scaffold.write import write_all


def test_files_that_hold_the_text_already_are_left_alone(tmp_path):
    (tmp_path / "a").write_text("same")
    assert write_all({tmp_path / "a": "same", tmp_path / "b": "new"}) == [tmp_path / "b"]
    assert (tmp_path / "b").read_text() == "new"


def test_nothing_is_written_where_one_file_cannot_be(tmp_path):
    (tmp_path / "a").write_text("old")
    with pytest.raises(OutputError, match="cannot be written"):
        write_all({tmp_path / "a": "new", tmp_path / "missing" / "b": "new"})
    assert (tmp_path / "a").read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["a"]


def test_a_folder_in_the_way_leaves_no_temporary_file(tmp_path):
    (tmp_path / "a").mkdir()
    with pytest.raises(OutputError):
        write_all({tmp_path / "a": "new"})
    assert [entry.name for entry in tmp_path.iterdir()] == ["a"]


def test_a_file_that_cannot_be_put_in_place_takes_the_others_back(tmp_path):
    (tmp_path / "a").write_text("old")
    (tmp_path / "c").mkdir()
    with pytest.raises(OutputError):
        write_all({tmp_path / "a": "new", tmp_path / "b": "new", tmp_path / "c": "new"})
    assert (tmp_path / "a").read_text() == "old"
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["a", "c"]
