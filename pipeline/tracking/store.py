"""Reach the MLflow store next to params.yaml, without minutes of waiting and without its noise."""

from __future__ import annotations

import logging
import os
import sqlite3
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

#: MLflow would retry a server that is down for four minutes, send telemetry, and print bars and links of its own
ENVIRONMENT = {
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
    "MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR": "1",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "30",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "GIT_PYTHON_REFRESH": "quiet",
}
REACH_SECONDS = 5


@dataclass(frozen=True)
class MlflowStore:
    """MLflow store; `uri` is its tracking URI. `database` is the file behind it, where it is SQLite.

    `lock` is the file that keeps two processes of this machine from setting the store up, or logging the same result,
    at once: MLflow's schema migration and its experiment creation do not bear it.
    """

    uri: str
    database: Path | None
    lock: Path

    @property
    def is_http(self) -> bool:
        return self.uri.startswith(("http://", "https://"))

    @property
    def artifacts(self) -> str | None:
        """Return the artifact folder of a new experiment: next to a SQLite file, else the server's choice, None."""
        return None if self.database is None else (self.database.parent / "mlartifacts").as_uri()


def find_store(repo: Path) -> MlflowStore:
    """Find the store: `$MLFLOW_TRACKING_URI`, else SQLite next to `repo`'s params.yaml."""
    folder = real_folder(repo)
    uri = os.environ.get("MLFLOW_TRACKING_URI") or f"sqlite:///{folder / 'mlflow.db'}"
    database = Path(uri.removeprefix("sqlite:///")).resolve() if uri.startswith("sqlite:///") else None
    beside = database or folder / "mlflow.db"
    return MlflowStore(uri, database, lock=beside.with_name(f"{beside.name}.lock"))


def real_folder(folder: Path) -> Path:
    """Return the absolute path of `folder`; in a queued experiment, of its original.

    DVC runs a queued experiment in a temporary copy of the repo, and names the root of the real repo in `$DVC_ROOT`.
    In any other stage that is the root of the repo itself, maybe above the folder of dvc.yaml.
    """
    folder, real_root = folder.resolve(), os.environ.get("DVC_ROOT")
    if not real_root:
        return folder
    root = next((above for above in (folder, *folder.parents) if (above / ".dvc").is_dir()), folder)
    return Path(real_root).resolve() / folder.relative_to(root)


def is_damage(error: BaseException | None) -> bool:
    """Tell whether SQLite, behind `error`, calls its file damaged, rather than locked, full or read-only."""
    while error is not None:
        if type(getattr(error, "orig", None)) is sqlite3.DatabaseError:
            return True
        error = error.__cause__
    return False


def unreachable(store: MlflowStore) -> str | None:
    """Explain why the server does not answer, or return None: any answer will do, MLflow reports its meaning."""
    if not store.is_http:
        return None
    import requests

    try:
        requests.get(f"{store.uri.rstrip('/')}/health", timeout=REACH_SECONDS)
    except requests.RequestException as error:
        return f"no answer from {store.uri} ({type(error).__name__})"
    return None


@contextmanager
def quick_and_quiet(store: MlflowStore) -> Iterator[None]:
    """Shorten timeouts and silence MLflow meanwhile; the user's own environment variables stay.

    MLflow's registry finds a LoggedModel only in the store of the environment.
    """
    wanted = ENVIRONMENT | {"MLFLOW_TRACKING_URI": store.uri}
    added = [name for name in wanted if name not in os.environ]
    os.environ.update({name: wanted[name] for name in added})
    disabled = logging.root.manager.disable
    logging.disable(logging.ERROR)  # an error reaches the user as the exception it is raised with
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(disabled)
        for name in added:
            os.environ.pop(name, None)
