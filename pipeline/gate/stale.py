"""Find stale results: compare each step's recorded inputs with the present ones."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from ..artifacts.locked import Lock, changed_inputs
from ..artifacts.origin import (
    UNTUNED,
    changes,
    import_options,
    quantize_record,
    search_record,
    search_settings,
    tune_record,
    verify_record,
    verify_settings,
)
from ..artifacts.places import (
    ASKED,
    ORIGIN,
    REMAKE,
    canonical_model,
    compile_dir,
    quantised_model,
    search_file,
    tuning_file,
)
from ..artifacts.sample_files import quantize_stage_name, settings_file
from ..frontend.source.import_options import ImportOptions
from ..frontend.source.side_files import model_digest
from ..frontend.source.source import is_package
from ..params.params import ModelParams, Params
from ..scaffold import check_watched
from ..support.text_files import decode, read_text, sorted_json
from ..targets import Target
from ..tuning.database import read_tuning

Table = Mapping[str, object]
#: records of an import from before it could choose some of these lack them
_UNCHOSEN = ImportOptions().record()


def why_stale(repo: Path, params: Params, model: str, target: Target, lock: Lock | None = None) -> str | None:
    """Return why a result is stale, with the next step; None if it is up to date.

    The result must exist. `lock` tells whether a quantised model is up to date. Without a record of its origin it is stale, since nothing can be compared. Raises ConfigError
    for an unreadable knowledge or tuning file.
    """
    folder = repo / compile_dir(model, target.name)
    manifest = _read(folder / "manifest.json")
    made = _table(manifest, "made_from")
    if manifest is None or made is None:
        return f"of unknown origin: {_said(repo, folder / 'manifest.json')} has no `made_from`. {REMAKE}"
    reason = (
        _quantized(repo, params, model, lock)
        or _model(repo, params.models[model], model, made)
        or _search(repo, params, model, target, manifest, made)
        or _compile(repo, params, model, target, manifest, made, lock)
    )
    return None if reason is None else f"stale: {reason}. {REMAKE}"


def _quantized(repo: Path, params: Params, model: str, lock: Lock | None) -> str | None:
    """Compare the source of a quantised model with the present file: its file, its samples, its settings."""
    stage = quantize_stage_name(model)
    if params.models[model].quantize is None or lock is None:
        return None
    if stage not in lock.inputs:
        return f"dvc.lock does not record {stage}: the model was not quantised"
    settings = settings_file(model, "quantize")
    changed = changed_inputs(repo, stage, lock, {settings: sorted_json(quantize_record(params, model))})
    said = ", ".join(f"models.{model}.quantize or data" if each == settings else each for each in changed)
    return f"{said} changed since the model was quantised" if changed else None


def _model(repo: Path, declared: ModelParams, name: str, made: Table) -> str | None:
    """Compare the model of a library with params.yaml: directly, or through the canonical model."""
    now: dict[str, object] = {**import_options(declared).record()}
    if is_package(declared.source):
        now["source"] = declared.source
    else:
        file = repo / (declared.source if declared.quantize is None else quantised_model(name))
        try:
            now["model"] = model_digest(file)
            if (repo / "dvc.yaml").exists() and declared.quantize is None:
                check_watched(name, declared.source, repo / "dvc.yaml")
        except OSError as error:
            lost = _said(repo.absolute(), Path(os.path.normpath(Path(error.filename or file).absolute())))
            return f"{lost}, of the model, cannot be read: {error.strerror}. Get it with `dvc pull`"
    direct = changes({**_UNCHOSEN, **made}, now)
    if not direct:
        return None
    file = repo / canonical_model(name).with_name(ORIGIN)
    origin = _read(file)
    if origin is None:
        return _missing(repo, file) or f"the model differs: {', '.join(direct)} changed since it was compiled"
    if origin.get("canonical") != made.get("model"):
        return "the imported model differs from the compiled one"
    changed = changes({**_UNCHOSEN, **(_table(origin, "made_from") or {})}, now)
    return f"the model differs: {', '.join(changed)} changed since it was imported" if changed else None


def _search(repo: Path, params: Params, model: str, target: Target, manifest: Table, made: Table) -> str | None:
    """Compare the settings of the library's search with params.yaml."""
    file = search_file(repo / compile_dir(model, target.name))
    found, sequence = _read(file), _read(file.with_name("sequence.json"))
    if found is None:
        return _missing(repo, file)
    was = _table(found, "made_from") or {}
    budget = params.budget(model, target.name)
    now = search_record(search_settings(params), budget, target, repo)
    changed = changes(was, {**now, "model": made.get("model")})
    if changed:
        return f"{_list('search', changed)} changed since the search"
    asked = _table(manifest, "asked") or manifest  # another plan may have been delivered
    if sequence is not None and sequence.get("passes") not in (manifest.get("passes"), asked.get("passes")):
        return f"its sequence differs from {_said(repo, file.with_name('sequence.json'))}"
    return None


def _compile(
    repo: Path, params: Params, model: str, target: Target, manifest: Table, made: Table, lock: Lock | None
) -> str | None:
    """Compare the library's verification settings, target and tuning with the present ones.

    A tuning on disk that the stage `compile` does not read does not count.
    """
    now = verify_record(verify_settings(params), not manifest.get("exact", True), target)
    changed = changes(made, now)
    if changed:
        return f"{_list('verify', changed)} changed since it was compiled"
    file = repo / tuning_file(model, target.name)
    staged = lock is None or lock.has_tuning(model, target.name)
    asked = _read(file.with_name(ASKED)) if staged else UNTUNED
    if asked is None and file.is_file():
        return _missing(repo, file.with_name(ASKED))
    tuned = [] if asked is None else changes(asked, tune_record(params, target.name))
    if tuned:
        return f"{_list('tune', tuned)} changed since it was {'tuned' if staged else 'compiled'}"
    tuning = read_tuning(file, target) if staged and file.is_file() else None
    if tuning and (_table(manifest, "asked") or manifest).get("tuning") != tuning.digest:
        return f"it was compiled before {_said(repo, file)}"
    return None


def _missing(repo: Path, file: Path) -> str | None:
    """Report a stage's record as missing; None without DVC, where importing and searching are optional."""
    if (repo / "dvc.yaml").exists():
        return f"its origin cannot be checked: {_said(repo, file)} is missing. Get it with `dvc pull`"
    return None


def _list(section: str, changed: list[str]) -> str:
    own = {
        "model": "the imported model",
        "target": "facts, threads or opt of the target",
        "goal": "the budget to stop at",
        "index-checks": "the target's index-checks",
    }
    return ", ".join(own.get(key, f"{section}.{key}") for key in changed)


def _read(file: Path) -> Table | None:
    """Read the object in a JSON file; None if there is no file. Raises ConfigError."""
    return decode(dict, read_text(file, REMAKE), str(file), REMAKE) if file.exists() else None


def _table(data: Table | None, key: str) -> Table | None:
    value = None if data is None else data.get(key)
    return value if isinstance(value, dict) else None


def _said(repo: Path, file: Path) -> str:
    """Name a file in messages: relative to the repo."""
    return file.relative_to(repo).as_posix() if file.is_relative_to(repo) else str(file)
