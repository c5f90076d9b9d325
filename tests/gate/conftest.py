"""Provide the repo the gate runs in."""

from __future__ import annotations

import pytest

from .samples import PARAMS, Repo


@pytest.fixture
def repo(tmp_path, monkeypatch) -> Repo:
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    made = Repo(tmp_path)
    made.params(PARAMS)
    return made
