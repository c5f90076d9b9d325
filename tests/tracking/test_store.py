"""Where runs go."""

from __future__ import annotations

import logging
import os

from passfit.tracking.store import find_store, quick_and_quiet


def test_sqlite_in_the_repo_unless_told_otherwise(tmp_path):
    store = find_store(tmp_path)
    assert store.uri == f"sqlite:///{tmp_path}/mlflow.db"
    assert store.embedded and not store.is_http
    assert store.artifacts == (tmp_path / "mlartifacts").as_uri()
    assert store.lock == tmp_path / "mlflow.db.lock"


def test_a_queued_experiment_uses_the_store_of_its_repo(tmp_path, monkeypatch):
    monkeypatch.setenv("DVC_ROOT", str(tmp_path / "real"))
    assert find_store(tmp_path / "copy").uri == f"sqlite:///{tmp_path}/real/mlflow.db"


def test_the_tracking_uri_is_respected(tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:1")
    store = find_store(tmp_path)
    assert store.is_http and store.artifacts is None and store.lock == tmp_path / "mlflow.db.lock"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/other/my.db")
    store = find_store(tmp_path)
    assert not store.embedded and store.lock == tmp_path / "other" / "my.db.lock"
    assert store.artifacts == (tmp_path / "other" / "mlartifacts").as_uri()


def test_settings_of_the_user_stay_and_ours_go(monkeypatch):
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "7")
    monkeypatch.delenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", raising=False)
    before = dict(os.environ), logging.root.manager.disable
    with quick_and_quiet():
        assert os.environ["MLFLOW_HTTP_REQUEST_TIMEOUT"] == "7"
        assert os.environ["MLFLOW_HTTP_REQUEST_MAX_RETRIES"] == "2"
    assert (dict(os.environ), logging.root.manager.disable) == before
