"""Read the models in dvc.yaml: files the import stage watches, models the fetch stage downloads."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import ConfigError
from ..params.params import ModelParams
from ..support.yaml_file import read_yaml
from .render import is_fetched

IMPORT = ("stages", "import", "foreach")
FETCH = ("stages", "fetch", "foreach")


def part(data: object, place: tuple[str, ...]) -> Any:
    """Return the value at a path of keys; None if a key is missing."""
    for word in place:
        data = data.get(word) if isinstance(data, dict) else None
    return data


def check_models(models: Mapping[str, ModelParams], dvc_yaml: Path) -> None:
    """Check that `dvc_yaml` imports, and if need be fetches, each model of params.yaml.

    Raises ConfigError. DVC makes later stages for a missing model all the same, and would miss their input after
    minutes. A dvc.yaml without such stages imports models in another way, which is not checked.
    """
    data = read_yaml(dvc_yaml)
    imported, fetched = part(data, IMPORT), part(data, FETCH)
    for name, model in models.items():
        lacking = isinstance(imported, dict) and name not in imported
        if lacking or (is_fetched(model.source) and isinstance(fetched, list) and name not in fetched):
            stage = "import" if lacking else "fetch"
            raise ConfigError(
                f"params.yaml declares the model '{name}', but dvc.yaml does not {stage} it.",
                f"Run `passfit add {shlex.quote(model.source)} --name {name}`.",
            )
