"""Link the pages with figures, since MLflow opens on a page without any."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from urllib.parse import quote

from .store import MlflowStore

#: where `mlflow ui` listens unless told otherwise
LOCAL = "http://127.0.0.1:5000"


def links(store: MlflowStore, experiment_id: str, run_ids: Sequence[str], served: Sequence[str]) -> tuple[str, ...]:
    """Return lines for people: how to start MLflow without a server, views of the runs, how to serve a model.

    `served` are names of models with their aliases, such as `a@champion`.
    """
    lines = []
    server = store.uri.rstrip("/") if store.is_http else LOCAL
    if not store.is_http:
        lines.append(f"look:    mlflow ui --backend-store-uri {_uri(store)}")
    lines.append(f"charts:  {server}/#/experiments/{experiment_id}/runs?compareRunsMode=CHART")
    if len(run_ids) > 1:
        runs, experiments = (quote(json.dumps(ids, separators=(",", ":"))) for ids in (list(run_ids), [experiment_id]))
        lines.append(f"compare: {server}/#/compare-runs?runs={runs}&experiments={experiments}")
    if served:
        serve = f"mlflow models serve -m models:/{served[0]} --env-manager local --port 5001"
        lines.append(f"serve:   MLFLOW_TRACKING_URI={_uri(store)} {serve}")
    return tuple(lines)


def _uri(store: MlflowStore) -> str:
    """Quote the URI for a shell. It is absolute: DVC runs stages in a folder that may not be the user's."""
    return shlex.quote(store.uri)
