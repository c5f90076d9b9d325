"""Let tests import the modules of benchmarks/ as its scripts do."""

from __future__ import annotations

from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def scripts(monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put benchmarks/ on the path; return it."""
    monkeypatch.syspath_prepend(BENCHMARKS)
    return BENCHMARKS
