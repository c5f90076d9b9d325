"""Register what the gate passes, and decide what is served: aliases follow the gate, and never an experiment."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mlflow.exceptions import MlflowException

from ..support.sizes import format_bytes
from .logged_model import SERVABLE
from .record import RunRecord
from .registry import register, registered_aliases, version_of

if TYPE_CHECKING:
    from mlflow import MlflowClient

#: the version to serve; `champion-TARGET` is that of one target. MLflow keeps the alias `latest` for itself
ALIAS = "champion"
#: tags of a version: its target, the budget it was judged by, its commit, and what the gate said last
TARGET, BUDGET, COMMIT, GATE = "passfit.target", "passfit.budget", "passfit.commit", "passfit.gate"
PASSED = "passed"
#: most characters of a tag
_MOST = 1000


@dataclass(frozen=True)
class Standing:
    """Standing of a result: failed checks by the gate, the experiment it is of, if any, and the commit it is registered at."""

    refused: str = ""
    experiment: str | None = None
    commit: str = ""

    @property
    def obstacle(self) -> str:
        """Return why a result is not registered; empty if it is."""
        if self.experiment:
            return f"it is of the experiment '{self.experiment}'"
        return self.refused and f"the gate refuses it: {self.refused}"


def promote(
    client: MlflowClient, run_id: str, model_id: str, record: RunRecord, standing: Standing, targets: Collection[str]
) -> str | None:
    """Write the gate's verdict into the tags of a LoggedModel, register it if nothing stands against, and move the aliases of its target to it.

    Returns the alias to serve it by, or None. `champion` stays with its target: it moves to one of another target only
    if its own is none of `targets` any more. It is of a library that MLflow can load.
    """
    name, target = record.result.model, record.result.target
    verdict = (standing.refused or PASSED)[:_MOST]
    client.set_logged_model_tags(model_id, {GATE: verdict})
    if standing.obstacle:
        if standing.refused and (known := version_of(client, record)) is not None:
            client.set_model_version_tag(name, known, GATE, verdict)  # it passed before: by another budget, say
        return None
    version = register(client, run_id, model_id, record)
    for tag, value in _tags(record, standing.commit).items():
        client.set_model_version_tag(name, version, tag, value)
    own = f"{ALIAS}-{re.sub(r'[^A-Za-z0-9_-]', '-', target)}"
    aliases = registered_aliases(client, name)
    leader = _target_of(client, name, aliases[ALIAS]) if ALIAS in aliases else None
    served = client.get_logged_model(model_id).model_type == SERVABLE
    leads = served and (leader == target or leader not in targets)
    for alias in (own, ALIAS) if leads else (own,):
        if aliases.get(alias) != version:
            client.set_registered_model_alias(name, alias, version)
    return (ALIAS if leads else own) if served else None


def _tags(record: RunRecord, commit: str) -> dict[str, str]:
    budget = record.result.budget
    limits = {"ram": budget.ram, "flash": budget.flash}
    said = ", ".join(f"{name} {format_bytes(nbytes)}" for name, nbytes in limits.items() if nbytes is not None)
    tags = {TARGET: record.result.target, BUDGET: said or "none", GATE: PASSED}
    return tags | ({COMMIT: commit} if commit else {})


def _target_of(client: MlflowClient, name: str, version: str) -> str | None:
    """Return the target of a version; None if it is gone, or not of passfit."""
    try:
        return client.get_model_version(name, version).tags.get(TARGET)
    except MlflowException:
        return None
