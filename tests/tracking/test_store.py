"""Where runs go."""

from __future__ import annotations

import logging
import os

import pytest

from passfit.tracking.store import find_store, quick_and_quiet


def test_sqlite_in_the_repo_unless_told_otherwise(tmp_path):
    store = find_store(tmp_path)
    assert store.uri == f"sqlite:///{tmp_path}/mlflow.db"
    assert not store.is_http
    assert store.artifacts == (tmp_path / "mlartifacts").as_uri()
    assert store.lock == tmp_path / "mlflow.db.lock"


def test_a_queued_experiment_uses_the_store_of_its_repo(tmp_path, monkeypatch):
    monkeypatch.setenv("DVC_ROOT", str(tmp_path / "real"))
    assert find_store(tmp_path / "copy").uri == f"sqlite:///{tmp_path}/real/mlflow.db"


@pytest.mark.parametrize("inside", [".", "edge", "a/b"])
def test_every_folder_with_params_has_one_store_whoever_asks(tmp_path, monkeypatch, inside):
    """The user's shell, a stage, which DVC gives the root of the repo, and a queued experiment in a copy of the repo."""
    real, copy = tmp_path / "real", tmp_path / "real" / ".dvc" / "tmp" / "exps" / "copy"
    for root in (real, copy):
        (root / ".dvc").mkdir(parents=True)
        (root / inside).mkdir(parents=True, exist_ok=True)
    by_hand = find_store(real / inside)
    monkeypatch.setenv("DVC_ROOT", str(real))
    assert by_hand == find_store(real / inside) == find_store(copy / inside)
    assert by_hand.database == (real / inside / "mlflow.db").resolve()


def test_the_tracking_uri_is_respected(tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:1")
    store = find_store(tmp_path)
    assert store.is_http and store.artifacts is None and store.lock == tmp_path / "mlflow.db.lock"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/other/my.db")
    store = find_store(tmp_path)
    assert store.lock == tmp_path / "other" / "my.db.lock"
    assert store.artifacts == (tmp_path / "other" / "mlartifacts").as_uri()


def test_settings_of_the_user_stay_and_ours_go(monkeypatch, tmp_path):
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "7")
    monkeypatch.delenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", raising=False)
    before = dict(os.environ), logging.root.manager.disable
    with quick_and_quiet(find_store(tmp_path)):
        assert os.environ["MLFLOW_HTTP_REQUEST_TIMEOUT"] == "7"
        assert os.environ["MLFLOW_HTTP_REQUEST_MAX_RETRIES"] == "2"
    assert (dict(os.environ), logging.root.manager.disable) == before
