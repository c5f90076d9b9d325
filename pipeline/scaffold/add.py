"""Add a model or target to params.yaml and dvc.yaml at once (`passfit add`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..artifacts.origin import import_options
from ..artifacts.places import quantised_model
from ..artifacts.sample_files import EVALUATED, evaluate_stage_name, quantize_stage_name
from ..errors import ConfigError
from ..frontend.source.import_options import ImportOptions
from ..params.params import DataParams, ModelParams, Params, params_of
from ..support.yaml_file import parse_yaml
from ..targets.catalogue import get_target
from .declare import data_in, declare, quantisation, repo_root, source_in
from .dvc_file import FETCH, IMPORT, asked_stages, part, side_paths, stages_of_samples, watched_files
from .edit_yaml import Entry
from .edited_file import EditedFile
from .names import model_name
from .remove import forget_evaluations
from .render import (
    CELLS,
    KERNELS,
    SINGLE,
    TUNE,
    TUNING,
    cells_stage,
    checked_file,
    data_entry,
    evaluate_stage,
    fetch_stage,
    fetched_entry,
    file_entry,
    import_stage,
    imported_file,
    is_fetched,
    kernels_stage,
    model_entry,
    model_file,
    own_import,
    quantize_entry,
    quantize_stage,
    target_entry,
    tune_stage,
    watched_entry,
    written_data,
    written_quantisation,
)
from .write import write_all

#: keys of a model in params.yaml, by option
_KEYS = {"--shape": "shapes", "--bound": "bounds", "--input": "inputs", "--output": "outputs", "--io": "io"}


def add_to_repo(
    repo: Path,
    models: Sequence[str] = (),
    targets: Sequence[str] = (),
    shapes: Mapping[str, Sequence[int]] | None = None,
    name: str | None = None,
    data: str | None = None,
    quantize: str | None = None,
    calibration: str | None = None,
    **options: Any,
) -> list[Path]:
    """Add models and targets to params.yaml and dvc.yaml in the folder `repo`; return the changed files.

    `models` are paths (relative to the working directory) or `pypi:` sources; `shapes`, and the forms of `inputs`, are given to each new model that
    has such an input, `bounds` to each that has such a result, `outputs` are kept alone in each that has one of them; `name` is for one model, else its file names
    it. `data` are samples of all of them, of those that are there already too, and
    `quantize` the form in which these quantise them, with ranges by `calibration` if it is given. Any other entry that is there stays as it is, and
    so does every other byte. A dvc.yaml that lacks a stage for what params.yaml asks for gets it. Both files are
    written, or none.

    Raises ConfigError for a file that is missing, cannot be edited, or holds another model of that name; ModelError for
    a model that cannot be read or leaves a shape open; TargetError for an unknown target.
    """
    if not models and not targets:
        raise ConfigError("Nothing was named.", "Give a MODEL or --target NAME; `passfit targets` lists the targets.")
    if name is not None and len(models) != 1:
        raise ConfigError(f"--name {name} is for one model, not for {len(models)}.", "Add them one by one.")
    root, chosen = repo_root(repo), ImportOptions(shapes or {}, **options)
    params_yaml, dvc_yaml = EditedFile.read(repo / "params.yaml"), EditedFile.read(repo / "dvc.yaml")
    params = params_of(params_yaml.data, params_yaml.path)
    sources = _named([source_in(repo, root, model) for model in models], name, params)
    samples = data_in(repo, root, data, calibration)
    new = _new(repo, sources, params, chosen, samples, quantize)
    for key, model in new.items():
        written = model.model_dump(mode="json", by_alias=True, exclude_defaults=True)
        if model.data is not None:
            written["data"] = written_data(model.data)
        if model.quantize is not None:
            written["quantize"] = written_quantisation(model.quantize)
        params_yaml.add(("models",), key, written, model_entry(key, model))
    for key in sources:
        if key not in new:
            _add_samples(params_yaml, key, params.models[key], samples, quantize)
    for target in dict.fromkeys(targets):
        get_target(target, repo)
        if target not in params.targets:
            params_yaml.add(("targets",), target, {"budget": {"ram": None, "flash": None}}, target_entry(target))
    asked = params_of(params_yaml.data, params_yaml.path)
    declared = asked.models
    for key, source in sources.items():
        beside = [] if is_fetched(source) else side_paths(repo, source)
        _add_import(dvc_yaml, key, declared[key], beside)
        _add_sample_stages(repo, dvc_yaml, key, declared[key], beside)
    _add_asked_stages(dvc_yaml, asked)
    return write_all({edited.path: edited.text for edited in (dvc_yaml, params_yaml)})


def _named(sources: Sequence[str], name: str | None, params: Params) -> dict[str, str]:
    """Name the sources, as name → source.

    A source that is declared already keeps its name, unless another is asked for.
    """
    named: dict[str, str] = {}
    for source in dict.fromkeys(sources):
        declared = next((key for key, model in params.models.items() if model.source == source), None)
        key = name or declared or model_name(source)
        other = named.get(key) or (params.models[key].source if key in params.models else source)
        if other != source:
            raise ConfigError(f"'{key}' is the name of another model: '{other}'.", "Choose another one with --name.")
        named[key] = source
    return named


def _new(
    repo: Path,
    sources: Mapping[str, str],
    params: Params,
    options: ImportOptions,
    data: DataParams | None,
    form: str | None,
) -> dict[str, ModelParams]:
    """Declare the models params.yaml lacks.

    Raises ConfigError if there are none, and a shape differs from the declared one.
    """
    new = {key: source for key, source in sources.items() if key not in params.models}
    if new:
        return declare(repo, new, options, data, form)
    for key in sources:
        there = params.models[key]
        differ = [f"--shape {port}" for port, shape in options.shapes.items() if tuple(shape) != there.shapes.get(port)]
        differ += [f"--input {port}" for port, form in options.input_ports.items() if form != there.inputs.get(port)]
        differ += [f"--bound {result}" for result, most in options.bounds.items() if most != there.bounds.get(result)]
        if options.outputs and (
            set(options.outputs) != set(there.outputs) or options.output_ports != import_options(there).output_ports
        ):
            differ.append("--output")
        if options.io is not None and options.io != there.io:
            differ.append("--io")
        if differ:
            raise ConfigError(
                f"The model '{key}' is there already, and {differ[0]} would change it.",
                f"Change models.{key}.{_KEYS[differ[0].split()[0]]} in params.yaml, or give another --name.",
            )
    return {}


def _add_samples(
    params_yaml: EditedFile, name: str, model: ModelParams, data: DataParams | None, form: str | None
) -> None:
    """Add samples, and the form in which they quantise it, to a declared model. Raises ConfigError if it has others."""
    if model.data is None and data is not None:
        params_yaml.add(("models", name), "data", written_data(data), data_entry(data))
    elif model.data is not None and data is not None:
        for key in ("source", "calibration"):
            there, asked = getattr(model.data, key), getattr(data, key)
            if asked not in (None, there):
                raise ConfigError(
                    f"The model '{name}' has other data already: {repr(there) if there else f'no {key}'}.",
                    f"Change models.{name}.data in params.yaml.",
                )
    if form is None:
        return
    asked = quantisation(form, model.data or data)
    if model.quantize is None:
        params_yaml.add(("models", name), "quantize", written_quantisation(asked), quantize_entry(asked))
    elif model.quantize.form != form:
        raise ConfigError(
            f"The model '{name}' is quantised in another form already: {model.quantize.form}.",
            f"Change models.{name}.quantize in params.yaml, or give another --name.",
        )


def _add_sample_stages(repo: Path, dvc_yaml: EditedFile, name: str, model: ModelParams, beside: Sequence[str]) -> None:
    """Add or renew the stages that quantise and evaluate a model; drop those it needs no more.

    What tracks and reports depends on evaluations from then on.
    """
    needed = stages_of_samples(repo, name, model)
    kept = [stage for stage, _ in needed.values()]
    for stage in (quantize_stage_name(name), evaluate_stage_name(name)):
        if stage not in kept and part(dvc_yaml.data, ("stages", stage)) is not None:
            dvc_yaml.drop(("stages",), stage)
    forget_evaluations(dvc_yaml)
    for verb, (stage, wanted) in needed.items():
        watched = part(dvc_yaml.data, ("stages", stage, "deps"))
        if watched is not None and set(wanted) <= set(watched):
            continue
        if watched is not None:
            dvc_yaml.drop(("stages",), stage)
        first = ("import",) if verb == "quantise" else ("kernels", "track", "report")
        made = quantize_stage(repo, name, model, beside) if verb == "quantise" else evaluate_stage(repo, name, model)
        _add_stage(dvc_yaml, stage, made, _first(dvc_yaml, *first))
    for stage in ("track", "report") if model.data is not None else ():
        deps = part(dvc_yaml.data, ("stages", stage, "deps"))
        if deps is not None and EVALUATED not in deps:
            dvc_yaml.add(("stages", stage, "deps"), EVALUATED, None, watched_entry(EVALUATED))


def _add_asked_stages(dvc_yaml: EditedFile, params: Params) -> None:
    """Add the stages that `params` asks for; what comes after `tune` reads its result, `cells` stands for others."""
    if all(part(dvc_yaml.data, ("stages", stage)) is None for stage in ("compile", CELLS)):
        return
    for stage in asked_stages(params):
        if part(dvc_yaml.data, ("stages", stage)) is not None:
            continue
        if stage == CELLS:
            _add_stage(dvc_yaml, CELLS, cells_stage(), SINGLE[0])
            readers = (TUNE, KERNELS) if part(dvc_yaml.data, ("stages", TUNE)) is not None else ()
            for each in (*readers, *SINGLE):
                if part(dvc_yaml.data, ("stages", each)) is not None:
                    dvc_yaml.drop(("stages",), each)
            continue
        if stage == KERNELS:
            tuned = part(dvc_yaml.data, ("stages", TUNE)) is not None
            _add_stage(dvc_yaml, KERNELS, kernels_stage(tuned), _first(dvc_yaml, "track", "report"))
            continue
        _add_stage(dvc_yaml, TUNE, tune_stage(), "compile")
        for reader in ("compile", KERNELS):
            deps = part(dvc_yaml.data, ("stages", reader, "deps"))
            if deps is not None and TUNING not in deps:
                dvc_yaml.add(("stages", reader, "deps"), TUNING, None, Entry((f"- {TUNING}",), ""))


def _first(dvc_yaml: EditedFile, *stages: str) -> str | None:
    """Return the first of `stages` that is there."""
    return next((each for each in stages if part(dvc_yaml.data, ("stages", each)) is not None), None)


def _add_stage(dvc_yaml: EditedFile, key: str, stage: Entry, before: str | None) -> None:
    value = parse_yaml("\n".join(stage.block), dvc_yaml.path)[key]
    dvc_yaml.add(("stages",), key, value, Entry((*stage.block, ""), ""), before=before)


def _add_import(dvc_yaml: EditedFile, name: str, model: ModelParams, beside: Sequence[str]) -> None:
    """Add a model's file under `import`, and its name under `fetch` if packaged.

    A model with the side files `beside` is imported by a stage of its own: one in the section is moved. A quantised one is
    imported from its own file: an entry of the model as given is replaced.
    """
    source, file = model.source, checked_file(imported_file(name, model))
    if model.quantize is not None:
        beside = ()
    own = (*IMPORT[:1], own_import(name))
    imported = part(dvc_yaml.data, IMPORT) or {}
    if not isinstance(imported, dict):
        raise ConfigError(
            f"{dvc_yaml.path}: stages.import.foreach is not a table of files.",
            f"Add the model by hand: {file_entry(name, file).flow}",
        )
    if (others := {model_file(name, source), quantised_model(name).as_posix()} - {file}) and imported.get(
        name
    ) in others:
        dvc_yaml.drop(IMPORT, name)
        imported = part(dvc_yaml.data, IMPORT) or {}
    if part(dvc_yaml.data, own) is not None and model.quantize is not None:
        dvc_yaml.drop(own[:1], own[1])
    if imported.get(name, file) != file:
        raise ConfigError(
            f"{dvc_yaml.path} imports '{imported[name]}' as '{name}', but params.yaml says '{source}'.",
            f"Write `{file_entry(name, file).flow}` under stages.import.foreach.",
        )
    if is_fetched(source):
        _add_fetched(dvc_yaml, name)
    watched = watched_files(dvc_yaml.data, name)
    if watched is not None and set(beside) <= set(watched):
        return
    if part(dvc_yaml.data, own) is not None:
        for each in beside:
            if each not in (watched or ()):
                dvc_yaml.add((*own, "deps"), each, None, watched_entry(each))
    elif beside:
        _add_stage(dvc_yaml, own[1], import_stage(name, file, beside), IMPORT[1])
        if name in imported:
            dvc_yaml.drop(IMPORT, name)
    else:
        dvc_yaml.add(IMPORT, name, file, file_entry(name, file))


def _add_fetched(dvc_yaml: EditedFile, name: str) -> None:
    fetched = part(dvc_yaml.data, FETCH)
    if part(dvc_yaml.data, FETCH[:-1]) is None:
        _add_stage(dvc_yaml, FETCH[1], fetch_stage([name]), IMPORT[1])
    elif name not in (fetched or ()):
        dvc_yaml.add(FETCH, name, None, fetched_entry(name))
