"""Render the templates, and the entries that `passfit add` inserts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..artifacts.places import quantised_model
from ..artifacts.sample_files import (
    evaluate_stage_name,
    quantize_stage_name,
    watched_by_evaluation,
    watched_by_quantization,
)
from ..errors import ConfigError
from ..params.params import (
    DataParams,
    ModelParams,
    ProfileParams,
    QuantizeParams,
    SearchParams,
    TrackParams,
    TuneParams,
    VerifyParams,
)
from .edit_yaml import Entry

if TYPE_CHECKING:
    import jinja2

#: a plain YAML scalar: no digit in front, which may begin a number or a date, nor `.5` and `.inf`
_PLAIN = re.compile(r"(\.{1,2}/)*/?[A-Za-z_][A-Za-z0-9_./+-]*")
#: reserved words, of YAML 1.1 too, which other tools read
_YAML_WORDS = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})
#: DVC reads `${`, the shell reads quotes, and both read backslashes
_UNSAFE = re.compile(r"[\x00-\x1f'\\$]")
#: stages that params.yaml asks for, those that the last one stands for, and the result of the first, which others read then
TUNE, KERNELS, CELLS = "tune", "kernels", "cells"
SINGLE = ("optimize", "compile", "footprint")
TUNING = "out/tune/${item.model}/${item.target}/tuning.json"
_IMPORT = "python -m passfit.stages.import_model {} '{}'"


def model_file(name: str, source: str) -> str:
    """Return the file of a model relative to the repo: its own path, or the fetch stage's output."""
    return f"out/fetch/{name}.onnx" if is_fetched(source) else source


def imported_file(name: str, model: ModelParams) -> str:
    """Return the file that is imported: the model's own, or the quantised one."""
    return quantised_model(name).as_posix() if model.quantize is not None else model_file(name, model.source)


def is_fetched(source: str) -> bool:
    """Return whether a source is a package, rather than a file in the repo."""
    return source.startswith("pypi:")


def render_dvc_yaml(
    models: Mapping[str, ModelParams],
    targets: Iterable[str],
    side_files: Mapping[str, Sequence[str]] | None = None,
    repo: Path = Path(),
    asked: Iterable[str] = (),
) -> str:
    """Render dvc.yaml for models and targets; profiles are taken on the first target.

    `side_files` are those of models that have some. Samples are in `repo`. `asked` are the stages that params.yaml asks for: see `asked_stages`. Raises ConfigError for a path that could not stand in dvc.yaml and
    in a shell command as it is.
    """
    beside = {name: files for name, files in (side_files or {}).items() if files}
    split = [name for name in beside if models[name].quantize is None]
    files = {name: checked_file(imported_file(name, model)) for name, model in models.items()}
    fetched = [name for name, model in models.items() if is_fetched(model.source)]
    quantized = [name for name, model in models.items() if model.quantize is not None]
    return _template("dvc.yaml.j2").render(
        fetch=fetch_stage(fetched) if fetched else None,
        split=[
            *(quantize_stage(repo, name, models[name], beside.get(name, ())) for name in quantized),
            *(import_stage(name, files[name], beside[name]) for name in files if name in split),
        ],
        files={name: file for name, file in files.items() if name not in split},
        evaluate=[evaluate_stage(repo, name, model) for name, model in models.items() if model.data is not None],
        **{"import": _import_body("${key}", _IMPORT.format("${key}", "${item}"), ["${item}"])},
        profile_target=next(iter(targets)),
        tuning=TUNING,
        tuned=tune_stage() if TUNE in asked else None,
        timed=kernels_stage(TUNE in asked) if KERNELS in asked else None,
        cells=cells_stage() if CELLS in asked else None,
    )


def render_params_yaml(models: Mapping[str, ModelParams], targets: Iterable[str]) -> str:
    """Render params.yaml for models and targets.

    It has no budgets yet, and the defaults of everything else.
    """
    return _template("params.yaml.j2").render(
        models=[model_entry(name, model) for name, model in models.items()],
        targets=[target_entry(name) for name in targets],
        search=SearchParams(), tune=TuneParams(), profile=ProfileParams(), verify=VerifyParams(), track=TrackParams(),
    )  # fmt: skip


def render_ci(service: str, folder: str) -> str:
    """Render the CI file of `github` or `gitlab`; `folder` is that of params.yaml, relative to the root of the git repo."""
    return _template(f"{service}.yml.j2").render(folder=folder)


def checked_file(file: str) -> str:
    """Return `file` if it can stand in dvc.yaml and shell commands as it is.

    Raises ConfigError for any other path.
    """
    if _UNSAFE.search(file):
        raise ConfigError(
            f"The path '{file}' cannot be written into dvc.yaml.", "Rename the file: no quotes, '$' or backslashes."
        )
    return file


def model_entry(name: str, model: ModelParams) -> Entry:
    """Return the entry of a model under `models` in params.yaml."""
    shapes = {scalar(port): f"[{', '.join(map(str, shape))}]" for port, shape in model.shapes.items()}
    block = [f"{scalar(name)}:", f"  source: {scalar(model.source)}"]
    flow = f"source: {scalar(model.source)}"
    if shapes:
        block += ["  shapes:", *(f"    {port}: {shape}" for port, shape in shapes.items())]
        flow += f", shapes: {{{', '.join(f'{port}: {shape}' for port, shape in shapes.items())}}}"
    ports = model.model_dump(
        mode="json", by_alias=True, exclude_defaults=True, include={"bounds", "inputs", "outputs", "io"}
    )
    lines = [f"{key}: {_flow(value)}" for key, value in ports.items()]
    if model.data is not None:
        lines.append(data_entry(model.data).flow)
    if model.quantize is not None:
        lines.append(quantize_entry(model.quantize).flow)
    block += [f"  {line}" for line in lines]
    flow += "".join(f", {line}" for line in lines)
    return Entry(tuple(block), f"{scalar(name)}: {{{flow}}}")


def data_entry(data: DataParams) -> Entry:
    """Return the entry of samples under a model in params.yaml."""
    return _line(f"data: {_flow(written_data(data))}")


def written_data(data: DataParams) -> object:
    """Return samples for params.yaml: their source alone, if they have no other keys."""
    written = data.model_dump(mode="json", exclude_defaults=True)
    return written if len(written) > 1 else data.source


def quantize_entry(quantize: QuantizeParams) -> Entry:
    """Return the entry of a quantisation under a model in params.yaml."""
    return _line(f"quantize: {_flow(written_quantisation(quantize))}")


def written_quantisation(quantize: QuantizeParams) -> dict[str, object]:
    """Return form and loss of a quantisation for params.yaml: users change these first."""
    return quantize.model_dump(mode="json", by_alias=True, include={"form", "max_accuracy_loss"})


def _flow(value: object) -> str:
    """Format a value of JSON as YAML in one line."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{scalar(key)}: {_flow(each)}' for key, each in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_flow, value))}]"
    return scalar(value) if isinstance(value, str) else json.dumps(value)


def target_entry(name: str) -> Entry:
    """Return the entry of a target under `targets` in params.yaml."""
    return _line(f"{scalar(name)}: {{budget: {{ram: null, flash: null}}}}")


def file_entry(name: str, file: str) -> Entry:
    """Return the entry of a model under `stages.import.foreach` in dvc.yaml."""
    return _line(f"{scalar(name)}: {scalar(file)}")


def import_stage(name: str, file: str, side_files: Sequence[str]) -> Entry:
    """Return the stage `import-NAME` of dvc.yaml, for a model with side files: DVC has no lists of files by model."""
    body = _import_body(name, scalar(_IMPORT.format(name, file)), _listed((file, *side_files)))
    return Entry((f"{own_import(name)}:", *(f"  {line}" for line in body)), "")


def evaluate_stage(repo: Path, name: str, model: ModelParams) -> Entry:
    """Return the stage `evaluate-NAME` of dvc.yaml, for a model with samples."""
    watched = _listed(files_of_evaluation(repo, name, model))
    return _stage("evaluate.yaml.j2", evaluate_stage_name(name), name=name, watched=watched)


def files_of_evaluation(repo: Path, name: str, model: ModelParams) -> list[str]:
    """List the files of the user's that an evaluation reads; a quantised model is compared with its float file too."""
    own = [model_file(name, model.source)] if model.quantize is not None else []
    return [*(watched_by_evaluation(repo, model.data) if model.data else ()), *own]


def quantize_stage(repo: Path, name: str, model: ModelParams, side_files: Sequence[str]) -> Entry:
    """Return the stage `quantize-NAME` of dvc.yaml, for a model that is to be quantised by its samples."""
    file = checked_file(model_file(name, model.source))
    watched = [file, *side_files, *watched_by_quantization(repo, model)]
    command = scalar(f"python -m passfit.stages.quantize {name} '{file}'")
    return _stage("quantize.yaml.j2", quantize_stage_name(name), name=name, watched=_listed(watched), command=command)


def tune_stage() -> Entry:
    """Return the stage `tune` of dvc.yaml, for a params.yaml with seconds of tuning."""
    return _stage("tune.yaml.j2", TUNE, tuning=TUNING)


def kernels_stage(tuned: bool) -> Entry:
    """Return the stage `kernels` of dvc.yaml, for a params.yaml that has kernels timed; `tuned` beside the stage `tune`."""
    return _stage("kernels.yaml.j2", KERNELS, tuning=TUNING, tuned=tuned)


def cells_stage() -> Entry:
    """Return the stage `cells` of dvc.yaml, for a params.yaml with an executor."""
    return _stage("cells.yaml.j2", CELLS)


def _stage(template: str, key: str, **values: object) -> Entry:
    body = _template(template).render(**values).splitlines()
    return Entry((f"{key}:", *(f"  {line}" for line in body)), "")


def _listed(files: Iterable[str]) -> list[str]:
    """Return files as items of a list in dvc.yaml. Raises ConfigError."""
    return [scalar(checked_file(each)) for each in dict.fromkeys(files)]


def own_import(name: str) -> str:
    """Name the stage that imports one model with side files."""
    return f"import-{name}"


def _import_body(key: str, command: str, watched: Sequence[str]) -> list[str]:
    return _template("import.yaml.j2").render(key=key, command=command, watched=watched).splitlines()


def fetched_entry(name: str) -> Entry:
    """Return the entry of a model under `stages.fetch.foreach` in dvc.yaml, which is a list."""
    return Entry((f"- {scalar(name)}",), scalar(name))


def fetch_stage(models: Iterable[str]) -> Entry:
    """Return the stage `fetch` of dvc.yaml, which only models from packages need."""
    return Entry(tuple(_template("fetch.yaml.j2").render(fetched=list(models)).splitlines()), "")


def watched_entry(file: str) -> Entry:
    """Return the entry of a file under `deps` of a stage in dvc.yaml."""
    return Entry((f"- {scalar(checked_file(file))}",), scalar(file))


def _line(text: str) -> Entry:
    return Entry((text,), text)


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
    environment.filters["scalar"] = scalar
    return environment.get_template(name)


def scalar(text: str) -> str:
    """Format a string as a YAML scalar: plain if that is safe, else in double quotes (JSON strings are YAML)."""
    plain = _PLAIN.fullmatch(text) and text.lower() not in _YAML_WORDS
    return text if plain else json.dumps(text, ensure_ascii=False)
