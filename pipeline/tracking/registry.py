"""Register the library of this machine as a model for `mlflow models serve`."""

from __future__ import annotations

import shutil
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from mlflow import pyfunc
from mlflow.exceptions import MlflowException
from mlflow.models import ModelSignature
from mlflow.protos.databricks_pb2 import RESOURCE_ALREADY_EXISTS, RESOURCE_DOES_NOT_EXIST, ErrorCode
from mlflow.types import Schema, TensorSpec

from ..support.temporary_folder import scratch_folder
from .promote import TARGET
from .record import Io, Port, RunRecord, Servable
from .runs import CONTENT

if TYPE_CHECKING:
    from mlflow import MlflowClient

FOLDER = "model"
#: files a version cannot be served without, below FOLDER
_NEEDED = ("MLmodel", "artifacts")


def register(client: MlflowClient, run_id: str, record: RunRecord, servable: Servable) -> str:
    """Make the library a version of the registered model, once as long as its files are there; returns the version."""
    name = record.result.model
    version = _version_of(client, name, servable.content)
    if version is None:
        _upload(client, run_id, servable)
        _create_model(client, name)
        tags = {CONTENT: servable.content, TARGET: record.result.target}
        source = f"{client.get_run(run_id).info.artifact_uri}/{FOLDER}"
        version = str(client.create_model_version(name, source, run_id, tags=tags, description=record.note).version)
    return version


def _version_of(client: MlflowClient, name: str, content: str) -> str | None:
    """Find the newest version with this library whose files are there; names are `[a-z0-9-]`: they need no quoting."""
    versions = client.search_model_versions(f"name = '{name}'", order_by=["version_number DESC"])
    same = (version for version in versions if version.tags.get(CONTENT) == content)
    return next((str(version.version) for version in same if _is_kept(client, str(version.run_id))), None)


def _is_kept(client: MlflowClient, run_id: str) -> bool:
    """Tell whether a version's run is there, not deleted, and holds the files of the model."""
    try:
        if client.get_run(run_id).info.lifecycle_stage != "active":
            return False
        inside = {Path(file.path).name for file in client.list_artifacts(run_id, FOLDER)}
        return inside.issuperset(_NEEDED) and bool(client.list_artifacts(run_id, f"{FOLDER}/{_NEEDED[1]}"))
    except MlflowException as error:
        if error.error_code != ErrorCode.Name(RESOURCE_DOES_NOT_EXIST):
            raise
        return False


def _upload(client: MlflowClient, run_id: str, servable: Servable) -> None:
    with scratch_folder() as folder:
        place = folder / FOLDER
        library = folder / servable.library.name
        shutil.copyfile(servable.library, library)  # DVC may have put a link there, which MLflow would copy as a link
        pyfunc.save_model(
            path=str(place),
            python_model=str(Path(__file__).with_name("serve.py")),
            artifacts={"library": str(library)},
            model_config={"io": asdict(servable.io)},
            signature=_signature(servable.io),
            # without this, MLflow looks for requirements in a process of its own, which takes half a minute
            pip_requirements=["numpy"],
        )
        client.log_artifacts(run_id, str(place), FOLDER)


def _signature(io: Io) -> ModelSignature:
    return ModelSignature(inputs=_schema(io.inputs), outputs=_schema(io.outputs))


def _schema(ports: list[Port]) -> Schema:
    return Schema([TensorSpec(_dtype(port), tuple(port.shape), port.name) for port in ports])


def _dtype(port: Port) -> np.dtype:
    try:
        return np.dtype(port.dtype)
    except TypeError:
        raise MlflowException(f"'{port.name}' is {port.dtype}, which NumPy and so a served model do not know") from None


def _create_model(client: MlflowClient, name: str) -> None:
    try:
        client.create_registered_model(name)
    except MlflowException as error:
        if error.error_code != ErrorCode.Name(RESOURCE_ALREADY_EXISTS):
            raise
