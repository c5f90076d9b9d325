import pytest

from passfit.errors import ConfigError, OutputError
from passfit.support.text_files import read_text, write_text


def test_text_is_written_as_utf8_and_nothing_else_is_left(tmp_path):
    write_text(tmp_path / "a.json", "größe\n")
    assert (tmp_path / "a.json").read_bytes() == "größe\n".encode()
    assert [file.name for file in tmp_path.iterdir()] == ["a.json"]


def test_what_cannot_be_written_leaves_nothing_behind(tmp_path):
    (tmp_path / "a.json").mkdir()
    with pytest.raises(OutputError, match="a.json' cannot be written"):
        write_text(tmp_path / "a.json", "x")
    with pytest.raises(OutputError, match="b.json' cannot be written"):
        write_text(tmp_path / "missing" / "b.json", "x")
    assert [file.name for file in tmp_path.iterdir()] == ["a.json"]


def test_what_cannot_be_read_says_what_to_do(tmp_path):
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    for name, message in (("missing", "cannot be read"), (".", "cannot be read"), ("binary", "not a text file")):
        with pytest.raises(ConfigError, match=f"{message}.* Do this."):
            read_text(tmp_path / name, "Do this.")
