"""A repo of its own for each test, away from the MLflow settings of whoever runs the tests."""

from __future__ import annotations

import pytest

from ..warm import copy_tables
from .samples import Repo, build_library


@pytest.fixture(autouse=True)
def no_settings(monkeypatch):
    for name in (
        "MLFLOW_TRACKING_URI",
        "MLFLOW_REGISTRY_URI",
        "MLFLOW_RUN_ID",
        "DVC_ROOT",
        "DVC_EXP_NAME",
        "DVC_EXP_BASELINE_REV",
    ):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="session", autouse=True)
def tables(tmp_path_factory):
    """MLflow's tables are made once."""
    pytest.importorskip("mlflow")
    copy_tables(tmp_path_factory.mktemp("tables") / "empty.db")


@pytest.fixture
def repo(tmp_path) -> Repo:
    path = tmp_path / "repo"
    path.mkdir()
    return Repo(path)


@pytest.fixture(scope="session")
def library(tmp_path_factory):
    return build_library(tmp_path_factory.mktemp("library") / "libtwo.so")
