"""Log the delivery as an MLflow LoggedModel: one for each run, with files, figures, and the library to serve.

A search over these answers which result is the best of those that fit: see docs/ci-gate.md.
"""

from __future__ import annotations

import shutil
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from mlflow import pyfunc
from mlflow.entities import LoggedModelStatus
from mlflow.exceptions import MlflowException
from mlflow.models import ModelSignature
from mlflow.types import Schema, TensorSpec
from mlflow.utils.mlflow_tags import MLFLOW_GIT_COMMIT

from ..card import BOM, CARD
from ..support.temporary_folder import scratch_folder
from .metrics import model_figures
from .record import Delivery, Io, LoggedPort, RunRecord, Servable
from .runs import CONTENT, dataset_of, metric_of

if TYPE_CHECKING:
    from mlflow import MlflowClient

#: kinds of LoggedModels: a library for a device, and one that `mlflow models serve` loads
LIBRARY, SERVABLE = "library", "pyfunc"
#: files without which a LoggedModel is not whole: a servable one needs MLmodel as well
_NEEDED = {LIBRARY: {CARD, BOM}, SERVABLE: {CARD, BOM, "MLmodel", "artifacts"}}


def ensure_model(client: MlflowClient, experiment_id: str, run_id: str, record: RunRecord, serve: bool) -> str:
    """Return the id of the LoggedModel of a record; log it, as one of the run, if there is none with its files.

    With `serve`, its library is one that MLflow can load on this machine.
    """
    kind = SERVABLE if serve else LIBRARY
    for model in client.search_logged_models([experiment_id], f"tags.`{CONTENT}` = '{record.content}'"):
        if model.model_type == kind and is_whole(client, model.model_id):
            return model.model_id
    return _log_model(client, experiment_id, run_id, record, kind)


def is_whole(client: MlflowClient, model_id: str) -> bool:
    """Return whether a LoggedModel is there, was logged to its end, and has its files."""
    try:
        model = client.get_logged_model(model_id)
        files = {Path(file.path).name for file in client.list_logged_model_artifacts(model_id)}
    except MlflowException:
        return False
    return model.status == LoggedModelStatus.READY and files.issuperset(_NEEDED.get(model.model_type, set()))


def _log_model(client: MlflowClient, experiment_id: str, run_id: str, record: RunRecord, kind: str) -> str:
    """Log files first and figures last: a model that was cut short is not found by its figures."""
    run, tags = client.get_run(run_id), {CONTENT: record.content}
    if commit := run.data.tags.get(MLFLOW_GIT_COMMIT):
        tags[MLFLOW_GIT_COMMIT] = commit
    model = client.create_logged_model(experiment_id, record.name, run_id, tags, record.params, kind)
    with scratch_folder() as folder:
        files = folder / "model"
        _write_files(record.delivery, files, kind)
        client.log_model_artifacts(model.model_id, str(files))
    at = run.info.start_time  # the run has these points already, and gets no others
    dataset = None if record.accuracy is None else dataset_of(record.accuracy)
    metrics = [metric_of(each, at, dataset, model.model_id) for each in model_figures(record.figures)]
    client.log_batch(run_id, metrics=metrics)
    client.finalize_logged_model(model.model_id, LoggedModelStatus.READY)
    return model.model_id


def _write_files(delivery: Delivery, folder: Path, kind: str) -> None:
    """Write the files of a LoggedModel; those that DVC linked from its cache as files."""
    if delivery.servable is not None and kind == SERVABLE:
        _write_servable(delivery.servable, folder)
    folder.mkdir(exist_ok=True)
    for path in delivery.files:
        shutil.copyfile(path, folder / path.name)
    (folder / CARD).write_text(delivery.card, encoding="utf-8")
    (folder / BOM).write_text(delivery.bom, encoding="utf-8")


def _write_servable(servable: Servable, folder: Path) -> None:
    with scratch_folder() as copies:
        library = copies / servable.library.name
        shutil.copyfile(servable.library, library)  # DVC may have put a link there, which MLflow would copy as a link
        pyfunc.save_model(
            path=str(folder),
            python_model=str(Path(__file__).with_name("serve.py")),
            artifacts={"library": str(library)},
            model_config={"io": asdict(servable.io)},
            signature=_signature(servable.io),
            # without this, MLflow looks for requirements in a process of its own, which takes half a minute
            pip_requirements=["numpy"],
        )


def _signature(io: Io) -> ModelSignature:
    return ModelSignature(inputs=_schema(io.inputs), outputs=_schema(io.outputs))


def _schema(ports: list[LoggedPort]) -> Schema:
    return Schema([TensorSpec(np.dtype(port.dtype), tuple(port.shape), port.name) for port in ports])
