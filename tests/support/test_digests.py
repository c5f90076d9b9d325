"""Digests of files are those of their content, and that of a large file is computed once."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from passfit.support import digests
from passfit.support.digests import digest_of


def test_a_digest_is_that_of_the_content_however_soon_it_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(digests, "_KEPT", 0)
    for number in range(32):
        (tmp_path / "file").write_bytes(content := bytes([number]) * 9)
        assert digest_of(tmp_path / "file") == hashlib.sha256(content).hexdigest()


def test_a_large_file_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = []
    monkeypatch.setattr(digests, "_KEPT", 2)
    monkeypatch.setattr(digests, "_SETTLED", float("-inf"))
    monkeypatch.setattr(digests, "_compute", lambda file: read.append(file.name) or file.read_text())
    (tmp_path / "large").write_text("ab")
    (tmp_path / "small").write_text("a")
    for _ in range(2):
        assert [digest_of(tmp_path / name) for name in ("large", "small")] == ["ab", "a"]
    assert sorted(read) == ["large", "small", "small"]
    (tmp_path / "large").write_text("abc")
    assert digest_of(tmp_path / "large") == "abc"
