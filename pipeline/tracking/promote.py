"""Decide which version of a model is served: the alias `champion` follows the gate, and never an experiment."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mlflow.exceptions import MlflowException

if TYPE_CHECKING:
    from mlflow import MlflowClient

#: the version to serve; `champion-TARGET` is that of one target. MLflow keeps the alias `latest` for itself
ALIAS = "champion"
#: tags of a version: its target, what the gate said last, and the experiment that made it
TARGET, GATE, EXPERIMENT = "passfit.target", "passfit.gate", "passfit.experiment"
PASSED = "passed"
#: most characters of a tag
_MOST = 1000


@dataclass(frozen=True)
class Standing:
    """Standing of results for promotion: failed checks by the gate, and the experiment they are of, if any."""

    refused: str = ""
    experiment: str | None = None

    @property
    def obstacle(self) -> str:
        """Return why a version is not promoted; empty if it is."""
        if self.experiment:
            return f"it is of the experiment '{self.experiment}'"
        return self.refused and f"the gate refuses it: {self.refused}"


def promote(
    client: MlflowClient, name: str, version: str, target: str, standing: Standing, targets: Collection[str]
) -> str | None:
    """Write the gate's verdict into a version's tags, and move its target's aliases to it if nothing stands against.

    Returns the alias to serve it by, or None. `champion` stays with its target: it moves to one of another target only
    if its own is none of `targets` any more.
    """
    client.set_model_version_tag(name, version, GATE, (standing.refused or PASSED)[:_MOST])
    if standing.experiment:
        client.set_model_version_tag(name, version, EXPERIMENT, standing.experiment)
    if standing.obstacle:
        return None
    own = f"{ALIAS}-{re.sub(r'[^A-Za-z0-9_-]', '-', target)}"
    aliases = client.get_registered_model(name).aliases
    leader = _target_of(client, name, str(aliases[ALIAS])) if ALIAS in aliases else None
    leads = leader == target or leader not in targets
    for alias in (own, ALIAS) if leads else (own,):
        if str(aliases.get(alias)) != version:
            client.set_registered_model_alias(name, alias, version)
    return ALIAS if leads else own


def _target_of(client: MlflowClient, name: str, version: str) -> str | None:
    """Return the target of a version; None if it is gone, or not of passfit."""
    try:
        return client.get_model_version(name, version).tags.get(TARGET)
    except MlflowException:
        return None
