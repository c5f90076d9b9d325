"""Register a LoggedModel as a version of the registered model of its name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlflow.exceptions import MlflowException
from mlflow.protos.databricks_pb2 import RESOURCE_ALREADY_EXISTS, RESOURCE_DOES_NOT_EXIST, ErrorCode

from .logged_model import is_whole
from .record import RunRecord
from .runs import CONTENT

if TYPE_CHECKING:
    from mlflow import MlflowClient

_SCHEME = "models:/"


def register(client: MlflowClient, run_id: str, model_id: str, record: RunRecord) -> str:
    """Make the library a version of the registered model, once as long as its files are there; returns the version."""
    version = version_of(client, record)
    if version is None:
        name = record.result.model
        _create_model(client, name)
        tags = {CONTENT: record.delivery.content}
        made = client.create_model_version(
            name, f"{_SCHEME}{model_id}", run_id, tags=tags, description=record.note, model_id=model_id
        )
        version = str(made.version)
    return version


def version_of(client: MlflowClient, record: RunRecord) -> str | None:
    """Find the newest version with this library whose files are there; names are `[a-z0-9-]`: they need no quoting."""
    versions = client.search_model_versions(f"name = '{record.result.model}'", order_by=["version_number DESC"])
    same = (version for version in versions if version.tags.get(CONTENT) == record.delivery.content)
    # an older passfit registered files of a run, which no LoggedModel holds
    return next(
        (
            str(version.version)
            for version in same
            if version.source.startswith(_SCHEME) and is_whole(client, version.source.removeprefix(_SCHEME))
        ),
        None,
    )


def _create_model(client: MlflowClient, name: str) -> None:
    try:
        client.create_registered_model(name)
    except MlflowException as error:
        if error.error_code != ErrorCode.Name(RESOURCE_ALREADY_EXISTS):
            raise


def registered_aliases(client: MlflowClient, name: str) -> dict[str, str]:
    """Return the version of each alias of a registered model; empty if there is no such model."""
    try:
        aliases = client.get_registered_model(name).aliases
    except MlflowException as error:
        if error.error_code != ErrorCode.Name(RESOURCE_DOES_NOT_EXIST):
            raise
        return {}
    return {alias: str(version) for alias, version in aliases.items()}
