"""Read the models in dvc.yaml: files the import stage watches, models the fetch stage downloads."""

from __future__ import annotations

import posixpath
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..artifacts.sample_files import evaluate_stage_name, quantize_stage_name, watched_by_quantization
from ..errors import ConfigError
from ..frontend.source.side_files import side_files
from ..params.params import ModelParams, Params
from ..support.yaml_file import read_yaml
from .render import CELLS, KERNELS, TUNE, files_of_evaluation, is_fetched, own_import

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
        alone = part(data, (*IMPORT[:1], own_import(name))) is not None
        lacking = isinstance(imported, dict) and name not in imported and not alone
        if lacking or (is_fetched(model.source) and isinstance(fetched, list) and name not in fetched):
            stage = "import" if lacking else "fetch"
            raise ConfigError(
                f"params.yaml declares the model '{name}', but dvc.yaml does not {stage} it.", _add_again(name, model)
            )
        if isinstance(imported, dict):
            _check_samples(data, name, model, dvc_yaml)


def asked_stages(params: Params) -> dict[str, str]:
    """Return the stages that do nothing unless params.yaml asks for them, by the settings that do."""
    found = {CELLS: "executor"} if params.executor else {}
    if any(params.tuning(target).seconds for target in params.targets):
        found[TUNE] = "tune.seconds"
    if params.profile.kernels:
        found[KERNELS] = "profile.kernels"
    return found


def check_asked(params: Params, dvc_yaml: Path) -> None:
    """Check that `dvc_yaml` has the stages that `params` asks for. Raises ConfigError.

    A dvc.yaml that imports models in another way is not checked.
    """
    data = read_yaml(dvc_yaml)
    if not isinstance(part(data, IMPORT), dict):
        return
    asked = asked_stages(params)
    timed = asked.get(TUNE) or ("search.max-latency" if params.search.max_latency else "")
    if CELLS in asked and timed:
        raise ConfigError(
            f"params.yaml asks for an executor and for {timed}: cells side by side would disturb its measurements.",
            "Leave one of the two out.",
        )
    for stage, setting in asked.items():
        if part(data, ("stages", stage)) is None:
            raise ConfigError(
                f"params.yaml asks for {setting}, but dvc.yaml has no stage {stage}.",
                f"Run `passfit add --target {next(iter(params.targets))}`, which adds it.",
            )


def _check_samples(data: object, name: str, model: ModelParams, dvc_yaml: Path) -> None:
    """Check that dvc.yaml quantises and evaluates a model that has samples, and watches these. Raises ConfigError."""
    for verb, (stage, wanted) in stages_of_samples(dvc_yaml.parent, name, model).items():
        found = part(data, ("stages", stage))
        if found is None:
            raise ConfigError(
                f"params.yaml says how to {verb} the model '{name}', but dvc.yaml has no stage {stage}.",
                _add_again(name, model),
            )
        if missing := [file for file in wanted if file not in (part(found, ("deps",)) or ())]:
            raise ConfigError(
                f"The stage {stage} of dvc.yaml does not watch '{missing[0]}': it would miss a change of it.",
                _add_again(name, model),
            )


def stages_of_samples(repo: Path, name: str, model: ModelParams) -> dict[str, tuple[str, list[str]]]:
    """Return the stages that a model's samples need, with the files of the user's that they watch."""
    found = {}
    if model.quantize is not None:
        found["quantise"] = quantize_stage_name(name), watched_by_quantization(repo, model)
    if model.data is not None:
        found["evaluate"] = evaluate_stage_name(name), files_of_evaluation(repo, name, model)
    return found


def _add_again(name: str, model: ModelParams) -> str:
    return f"Run `passfit add {shlex.quote(model.source)} --name {name}`."


def check_watched(name: str, source: str, dvc_yaml: Path) -> None:
    """Check that `dvc_yaml` watches the side files of the model `name`, as an older one does not.

    Raises ConfigError, ModelError, OSError. A dvc.yaml that imports models in another way is not checked.
    """
    if is_fetched(source) or not (beside := side_paths(dvc_yaml.parent, source)):
        return
    watched = watched_files(read_yaml(dvc_yaml), name)
    if watched is None:
        return
    for file in beside:
        if not any(file == each or file.startswith(f"{each.rstrip('/')}/") for each in watched):
            raise ConfigError(
                f"'{source}' keeps weights in '{file}', which dvc.yaml does not watch: it would miss a change of them.",
                f"Run `passfit add {shlex.quote(source)} --name {name}`.",
            )


def side_paths(repo: Path, source: str) -> list[str]:
    """List the side files of a model file, relative to `repo` as its source is. Raises ModelError, OSError."""
    folder = posixpath.dirname(source)
    return [posixpath.normpath(posixpath.join(folder, file)) for file in side_files(repo / source)]


def watched_files(data: object, name: str) -> list[str] | None:
    """List the dependencies of a model's import in a parsed dvc.yaml; None if no stage of `init` imports it."""
    own, shared = part(data, (*IMPORT[:1], own_import(name))), part(data, IMPORT)
    if own is None and (not isinstance(shared, dict) or name not in shared):
        return None
    deps = part(data, (*IMPORT[:2], "do", "deps")) if own is None else part(own, ("deps",))
    file = "" if own is not None else str(shared[name])
    return [str(each).replace("${item}", file).replace("${key}", name) for each in deps or ()]
