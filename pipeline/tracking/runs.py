"""Log one MLflow run per record, once: it counts when finished and tagged with the content."""

from __future__ import annotations

import getpass
import json
import os
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from mlflow.entities import Dataset, DatasetInput, InputTag, Metric, Param, RunTag, ViewType
from mlflow.exceptions import MlflowException
from mlflow.utils.mlflow_tags import (
    MLFLOW_DATASET_CONTEXT,
    MLFLOW_GIT_COMMIT,
    MLFLOW_RUN_NOTE,
    MLFLOW_SOURCE_NAME,
    MLFLOW_SOURCE_TYPE,
    MLFLOW_USER,
)

from ..artifacts.git import git_line
from ..data.accuracy import AccuracyReport
from .metrics import MetricValue
from .record import RunRecord

if TYPE_CHECKING:
    from mlflow import MlflowClient

CONTENT = "passfit.content"
STARTED = "passfit.started"
#: MLflow refuses larger batches
BATCH = 1000
#: characters of a dataset's digest in MLflow's database
_DIGEST = 36


def finished_run(client: MlflowClient, experiment_id: str, content: str) -> str | None:
    """Find the id of the run with this `content` and its files; a run that was cut short carries no content tag."""
    runs = client.search_runs(
        [experiment_id],
        f"tags.`{CONTENT}` = '{content}' and attributes.status = 'FINISHED'",
        ViewType.ACTIVE_ONLY,
        order_by=["attributes.start_time ASC"],
    )
    return next((run.info.run_id for run in runs if client.list_artifacts(run.info.run_id)), None)


def log_run(client: MlflowClient, experiment_id: str, record: RunRecord, repo: Path) -> str:
    """Log everything, mark the run as complete, and return its id.

    Raises the errors of MLflow; the run is FAILED then.
    """
    run = client.create_run(experiment_id, run_name=record.name, tags=_context(repo) | {STARTED: record.content})
    run_id = run.info.run_id
    try:
        _log_figures(client, run_id, record, run.info.start_time)
        client.log_text(run_id, record.footprint, "footprint.json")
        for path in record.artifacts:
            client.log_artifact(run_id, str(path))
        if record.page is not None:
            client.log_text(run_id, record.page(), "report.html")
        client.set_tag(run_id, CONTENT, record.content)
    except BaseException:
        _give_up(client, run_id)
        raise
    client.set_terminated(run_id, "FINISHED")
    return run_id


def close_interrupted(client: MlflowClient, experiment_id: str, content: str) -> None:
    """Mark as killed the runs of this content whose process died. Only while nobody else can be writing them."""
    dead = client.search_runs(
        [experiment_id], f"tags.`{STARTED}` = '{content}' and attributes.status = 'RUNNING'", ViewType.ACTIVE_ONLY
    )
    for run in dead:
        client.set_terminated(run.info.run_id, "KILLED")


def _log_figures(client: MlflowClient, run_id: str, record: RunRecord, started: int) -> None:
    """Log params, tags and figures; all at the time of the run, so that those of its LoggedModel are the same points."""
    client.log_batch(
        run_id,
        params=[Param(name, value) for name, value in record.params.items()],
        tags=[RunTag(name, value) for name, value in {**record.tags, MLFLOW_RUN_NOTE: record.note}.items()],
    )
    dataset = None if record.accuracy is None else dataset_of(record.accuracy)
    if dataset is not None:
        client.log_inputs(run_id, [DatasetInput(dataset, [InputTag(MLFLOW_DATASET_CONTEXT, "evaluation")])])
    points = iter(metric_of(each, started, dataset) for each in record.figures)
    while batch := list(islice(points, BATCH)):
        client.log_batch(run_id, metrics=batch)


def dataset_of(report: AccuracyReport) -> Dataset:
    """Return the samples of an evaluation as MLflow's dataset: source and digest of their content, no copy of them."""
    from mlflow.data.meta_dataset import MetaDataset
    from mlflow.data.sources import LocalArtifactDatasetSource

    data = report.data
    found = MetaDataset(LocalArtifactDatasetSource(data.source), data.source, data.digest[:_DIGEST])
    profile = json.dumps({"num_rows": data.samples, "labelled": data.labelled, "sha256": data.digest})
    return Dataset(**found.to_dict(), profile=profile)


def metric_of(figure: MetricValue, at: int, dataset: Dataset | None, model_id: str | None = None) -> Metric:
    """Return a figure as MLflow's metric at a time; one on samples is linked to their dataset."""
    linked = dataset if figure.on_samples else None
    names = (None, None) if linked is None else (linked.name, linked.digest)
    return Metric(figure.name, figure.value, at, figure.step, model_id, *names)


def _give_up(client: MlflowClient, run_id: str) -> None:
    try:
        client.set_terminated(run_id, "FAILED")
    except (MlflowException, OSError):
        # the store is what failed: the run stays unfinished, which does not count either
        return


def _context(repo: Path) -> dict[str, str]:
    """Return the tags MLflow shows as user, source and version."""
    tags = {MLFLOW_SOURCE_NAME: "passfit track", MLFLOW_SOURCE_TYPE: "LOCAL"} | _user()
    if os.environ.get("DVC_EXP_NAME"):
        tags["dvc.experiment"] = os.environ["DVC_EXP_NAME"]
    commit = git_line(repo, "rev-parse", "HEAD")
    return tags | {MLFLOW_GIT_COMMIT: commit} if commit else tags


def _user() -> dict[str, str]:
    try:
        return {MLFLOW_USER: getpass.getuser()}
    except (KeyError, OSError):
        # a container may run under a number that has no name
        return {}
