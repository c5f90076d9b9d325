"""Fetch the files of a run from MLflow."""

from __future__ import annotations

import re
from pathlib import Path

from ..artifacts.places import ACCURACY
from ..errors import ConfigError
from .store import find_store, quick_and_quiet, unreachable

#: files of a run that a comparison reads
FILES = (
    "footprint.json",
    "plan.json",
    "plan-before.json",
    "sequence.json",
    "search.json",
    "front.json",
    ACCURACY,
)
_RUN = re.compile(r"[0-9a-f]{32}")


def is_run(name: str) -> bool:
    """Return whether a name looks like the id of a run."""
    return _RUN.fullmatch(name) is not None


def fetch_run(repo: Path, run_id: str, folder: Path) -> None:
    """Download the files of a run, as far as FILES names them, into `folder`. Raises ConfigError.

    Without MLFLOW_TRACKING_URI the store is the one next to params.yaml, which must be there: MLflow would make it.
    """
    store = find_store(repo)
    hint = "Name a run that `passfit track` logged; MLFLOW_TRACKING_URI names another store."
    if store.database is not None and not store.database.is_file():
        raise ConfigError(f"run {run_id}: there is no MLflow store {store.database}.", hint)
    with quick_and_quiet(store):
        if reason := unreachable(store):
            raise ConfigError(f"run {run_id}: {reason}.", hint)
        from mlflow import MlflowClient
        from mlflow.exceptions import MlflowException
        from sqlalchemy.exc import SQLAlchemyError

        try:
            client = MlflowClient(store.uri)
            there = {each.path for each in client.list_artifacts(run_id)}
            for name in FILES:
                if name in there:
                    client.download_artifacts(run_id, name, str(folder))
        except (MlflowException, SQLAlchemyError, OSError) as error:
            raise ConfigError(f"run {run_id}: {str(error).splitlines()[0].rstrip('.')}.", hint) from None
    if not (folder / FILES[0]).is_file():
        raise ConfigError(f"run {run_id} has no {FILES[0]}.", hint)
