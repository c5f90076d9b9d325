"""Log results on disk to MLflow: one run per model × target, once per content."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..artifacts.git import git_line
from ..artifacts.locked import read_lock
from ..artifacts.places import how_to_get
from ..errors import PassfitError
from ..params.params import Params, declared
from .experiment import experiment_of
from .record import RunRecord, read_record
from .store import MlflowStore, find_store, is_damage, quick_and_quiet, unreachable

if TYPE_CHECKING:
    from mlflow import MlflowClient

    from .promote import Standing

#: longer than another process needs to log everything
LOCK_SECONDS = 300


@dataclass(frozen=True)
class TrackedRun:
    """Run with this content; `new` tells whether it was logged just now."""

    name: str
    content: str
    run_id: str
    new: bool


@dataclass(frozen=True)
class TrackResult:
    """Tracked runs, links to them, results refused by the registry, and warnings of failures; no result depends on these."""

    links: tuple[str, ...] = ()
    runs: tuple[TrackedRun, ...] = ()
    refused: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def track(repo: Path, params: Params, refused: Mapping[tuple[str, str], str] | None = None) -> TrackResult:
    """Log every result under repo/out/compile that params.yaml declares, each as a run and a LoggedModel.

    With `refused`, register those that pass: it has the failed checks of each model and target, as the gate says them, or an
    empty text. Only a result without any is registered, and none of an experiment. A store that cannot be reached, or refuses, is a
    warning, and so is a malformed result: all others are logged.
    """
    records, unread, pairs, lock = [], [], declared(params), read_lock(repo)
    for model, target in pairs:
        try:
            record = read_record(repo, params, model, target, lock)
        except PassfitError as error:
            unread.append(f"{model} @ {target}: not tracked: {error}")
            continue
        records += [] if record is None else [record]
    if not records:
        none = f"nothing to track: there are no results under out/compile. {how_to_get(repo, pairs)}"
        return TrackResult(warnings=tuple(unread) or (none,))
    store = find_store(repo)
    with quick_and_quiet(store):
        reason = unreachable(store)
        if reason is not None:
            return TrackResult(warnings=(*unread, _not_tracked(reason)))
        found = _track(store, repo, params, records, refused)
    return replace(found, warnings=(*unread, *found.warnings))


def _track(
    store: MlflowStore,
    repo: Path,
    params: Params,
    records: list[RunRecord],
    refused: Mapping[tuple[str, str], str] | None,
) -> TrackResult:
    import requests
    from alembic.util import CommandError
    from filelock import FileLock, Timeout
    from mlflow import MlflowClient
    from mlflow.exceptions import MlflowException
    from sqlalchemy.exc import SQLAlchemyError

    from .logged_model import ensure_model
    from .promote import Standing

    runs: list[TrackedRun] = []
    warnings: list[str] = []
    obstacles: list[str] = []
    served: list[str] = []
    experiment_id, tried, commit = None, experiment_of(repo), git_line(repo, "rev-parse", "HEAD")
    try:
        with FileLock(store.lock, timeout=LOCK_SECONDS):
            client = MlflowClient(store.uri, os.environ.get("MLFLOW_REGISTRY_URI") or store.uri)
            experiment_id = _experiment(client, store, params.track.experiment)
            for record in records:
                run = _ensure_run(client, store, experiment_id, record, repo)
                runs.append(run)
                reason = _why_not_served(record)
                serve = record.delivery.servable is not None and not reason
                model_id = ensure_model(client, experiment_id, run.run_id, record, serve)
                if refused is None:
                    continue
                if reason:
                    warnings.append(f"{record.name}: not registered: {reason}")
                    continue
                pair = record.result.model, record.result.target
                standing = Standing(refused.get(pair, "it was not judged"), tried, commit)
                if standing.obstacle:
                    obstacles.append(f"{record.name}: not registered: {standing.obstacle}")
                served += _ensure_registered(client, run.run_id, model_id, record, standing, params, warnings)
    except Timeout:
        warnings.append(_not_tracked(f"another process has held {store.lock} for {LOCK_SECONDS} s"))
    except (MlflowException, SQLAlchemyError, CommandError, requests.RequestException, OSError) as error:
        # MLflow wraps the errors of its database only once it is open
        hint = f" Move {store.database} away, or restore it." if is_damage(error) else ""
        warnings.append(_not_tracked(_first_line(error)) + hint)
    if experiment_id is None or not runs:
        return TrackResult(warnings=tuple(warnings))
    from .links import links

    where = links(store, experiment_id, [run.run_id for run in runs], served)
    return TrackResult(where, tuple(runs), tuple(obstacles), tuple(warnings))


def _experiment(client: MlflowClient, store: MlflowStore, name: str) -> str:
    """Return the experiment's id; make it if missing, unless another machine does so meanwhile."""
    from mlflow.exceptions import MlflowException

    found = client.get_experiment_by_name(name)
    if found is None:
        try:
            return client.create_experiment(name, artifact_location=store.artifacts)
        except MlflowException:
            found = client.get_experiment_by_name(name)
            if found is None:
                raise
    if found.lifecycle_stage != "active":
        raise MlflowException(f"the experiment '{name}' is deleted: restore it, or name another in params.yaml (track)")
    return found.experiment_id


def _ensure_run(
    client: MlflowClient, store: MlflowStore, experiment_id: str, record: RunRecord, repo: Path
) -> TrackedRun:
    from .runs import close_interrupted, finished_run, log_run

    run_id = finished_run(client, experiment_id, record.content)
    if run_id is not None:
        return TrackedRun(record.name, record.content, run_id, new=False)
    if store.database is not None:
        # the lock is ours and the file is on this machine: nobody can be writing these runs
        close_interrupted(client, experiment_id, record.content)
    return TrackedRun(record.name, record.content, log_run(client, experiment_id, record, repo), new=True)


def _why_not_served(record: RunRecord) -> str:
    """Return why this machine cannot load the library that it was made for; empty if it can, and for other targets."""
    from ..codegen.check_loads import why_not_loadable

    servable = record.delivery.servable
    if servable is None or (reason := why_not_loadable(servable.library, servable.io.name)) is None:
        return ""
    return (
        f"{servable.library.name} does not load on this machine: {reason}. Make it again on this machine: `dvc repro`."
    )


def _ensure_registered(
    client: MlflowClient,
    run_id: str,
    model_id: str,
    record: RunRecord,
    standing: Standing,
    params: Params,
    warnings: list[str],
) -> list[str]:
    """Register the model and promote it if allowed; return its name and alias if it can be served.

    A registry that refuses does not stop the other runs.
    """
    from mlflow.exceptions import MlflowException

    from .promote import promote

    try:
        alias = promote(client, run_id, model_id, record, standing, params.targets)
    except MlflowException as error:
        warnings.append(f"{record.name}: not registered: {_first_line(error)}")
        return []
    return [] if alias is None else [f"{record.result.model}@{alias}"]


def _not_tracked(reason: str) -> str:
    return f"not tracked: {reason}. The results are complete; run `passfit track` later."


def _first_line(error: Exception) -> str:
    text = str(error).strip() or type(error).__name__
    return text.splitlines()[0].rstrip(".")
