"""Take a model or target out of params.yaml and dvc.yaml (`passfit remove`): what `passfit add` put in."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ..artifacts.sample_files import EVALUATED, evaluate_stage_name, quantize_stage_name
from ..errors import ConfigError, did_you_mean
from ..params.params import Params, params_of
from .declare import repo_root, source_in
from .dvc_file import FETCH, IMPORT, part
from .edited_file import EditedFile
from .render import own_import
from .write import write_all

#: folders of results, by model and then by target
_RESULTS = ("out/optimize", "out/tune", "out/compile", "out/evaluate", "footprints", "accuracies")
#: folders of a model alone
_OF_MODEL = ("out/quantize", "out/models", "out/profile", *_RESULTS)


class Removed(NamedTuple):
    """Files that were changed, and results on disk that nothing declares any more."""

    written: list[Path]
    left: list[Path]


def remove_from_repo(repo: Path, models: Sequence[str] = (), targets: Sequence[str] = ()) -> Removed:
    """Remove models, by name or source, and targets from params.yaml and dvc.yaml in the folder `repo`.

    Budgets and accepted growth of a removed model go too; every other byte stays. Both files are written, or none.

    Raises ConfigError for an undeclared name, the last model or target, the target of the stage profile, or a file that
    cannot be edited.
    """
    if not models and not targets:
        raise ConfigError("Nothing was named.", "Give a MODEL or --target NAME, as params.yaml names them.")
    params_yaml, dvc_yaml = EditedFile.read(repo / "params.yaml"), EditedFile.read(repo / "dvc.yaml")
    params = params_of(params_yaml.data, params_yaml.path)
    names = list(dict.fromkeys(_declared(repo, model, params) for model in models))
    unknown = next((target for target in targets if target not in params.targets), None)
    if unknown is not None:
        raise ConfigError(f"params.yaml has no target '{unknown}'.", did_you_mean(unknown, params.targets))
    kept = [target for target in params.targets if target not in targets]
    for what, gone, declared in (
        ("model", names, params.models),
        ("target", list(dict.fromkeys(targets)), params.targets),
    ):
        if len(gone) == len(declared):
            raise ConfigError(
                f"'{gone[-1]}' is the last {what} of params.yaml.", f"Add another {what} first, or delete both files."
            )
    for name in names:
        params_yaml.drop(("models",), name)
        for target in kept:
            for section in ("budgets", "accepted-growth"):
                if name in (part(params_yaml.data, ("targets", target, section)) or ()):
                    params_yaml.drop(("targets", target, section), name)
        _drop_stages(dvc_yaml, name)
    for target in dict.fromkeys(targets):
        if f"out/targets/{target}.json" in (part(dvc_yaml.data, ("stages", "profile", "deps")) or ()):
            raise ConfigError(
                f"{dvc_yaml.path}: the stage profile runs on '{target}'.",
                f"Name another target there, in cmd and deps: {kept[0]}.",
            )
        params_yaml.drop(("targets",), target)
    params_of(params_yaml.data, params_yaml.path)
    folders = [Path(folder, name) for name in names for folder in _OF_MODEL]
    folders += [Path(folder, name, target) for target in targets for name in params.models for folder in _RESULTS]
    folders += [
        Path(kept, name, f"{target}.json")
        for target in targets
        for name in params.models
        if name not in names
        for kept in ("footprints", "accuracies")
    ]
    left = [place for place in dict.fromkeys(folders) if (repo / place).exists()]
    return Removed(write_all({edited.path: edited.text for edited in (dvc_yaml, params_yaml)}), left)


def _declared(repo: Path, model: str, params: Params) -> str:
    """Return the declared name of a model given by name or source. Raises ConfigError."""
    if model in params.models:
        return model
    source = source_in(repo, repo_root(repo), model) if (repo / model).exists() else model
    names = [name for name, declared in params.models.items() if declared.source == source]
    if len(names) != 1:
        why = f"is the source of several models: {', '.join(names)}" if names else "is not a model of params.yaml"
        raise ConfigError(f"'{model}' {why}.", "Name one of them." if names else did_you_mean(model, params.models))
    return names[0]


def forget_evaluations(dvc_yaml: EditedFile) -> None:
    """Drop evaluations from the inputs of track and report once no stage evaluates a model."""
    if any(stage.startswith(evaluate_stage_name("")) for stage in part(dvc_yaml.data, ("stages",)) or ()):
        return
    for stage in ("track", "report"):
        if EVALUATED in (part(dvc_yaml.data, ("stages", stage, "deps")) or ()):
            dvc_yaml.drop(("stages", stage, "deps"), EVALUATED)


def _drop_stages(dvc_yaml: EditedFile, name: str) -> None:
    """Remove a model's import, and its download. A dvc.yaml that imports models in another way keeps its stages."""
    own = (own_import(name), quantize_stage_name(name), evaluate_stage_name(name))
    for place, key in ((IMPORT, name), *((IMPORT[:1], stage) for stage in own)):
        if key in (part(dvc_yaml.data, place) or ()):
            dvc_yaml.drop(place, key)
    forget_evaluations(dvc_yaml)
    fetched = part(dvc_yaml.data, FETCH) or ()
    if name in fetched:
        place, key = (FETCH[:1], FETCH[1]) if len(fetched) == 1 else (FETCH, name)
        dvc_yaml.drop(place, key)
