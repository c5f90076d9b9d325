"""Declare models for params.yaml: relative sources, and shapes checked against the file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from ..artifacts.git import git
from ..data.user_function import split_function
from ..errors import ConfigError, ModelError, did_you_mean
from ..frontend.canonical.read_onnx import read_model
from ..frontend.imported_model import import_onnx
from ..frontend.source.import_options import ImportOptions
from ..frontend.source.source import resolve_source
from ..params.params import DataParams, ModelParams, QuantizeParams
from ..params.ports import OutputPort
from ..quantise.quantise_model import FORMS
from .render import is_fetched


def repo_root(repo: Path) -> Path:
    """Find the root of the git repo around `repo`; DVC must know it too. Raises ConfigError."""
    if not repo.is_dir():
        raise ConfigError(f"'{repo}' is not a folder.", "Name the folder of a git repo.")
    root = Path((git(repo, "rev-parse", "--show-toplevel") or "").strip())
    if not root.is_absolute():
        raise ConfigError(
            f"'{repo}' is not in a git repo.", "Run `git init && dvc init` first; `git status` says what git finds."
        )
    above = [repo.resolve(), *repo.resolve().parents]
    if not any((folder / ".dvc").is_dir() for folder in above if folder.is_relative_to(root)):
        raise ConfigError(f"'{repo}' is not in a DVC repo.", "Run `dvc init` in the root of the git repo first.")
    return root


def source_in(repo: Path, root: Path, model: str) -> str:
    """Return a model's source as params.yaml in `repo` names it.

    It is `pypi:…`, or a path relative to `repo`, with '/'. Raises ConfigError for a file outside of `root`, ModelError
    for one that is not there.
    """
    if is_fetched(model):
        return model
    try:
        path = Path(os.path.abspath(resolve_source(model)))
    except ModelError as error:
        if os.path.lexists(model):
            raise
        said = "If a stage or `dvc add` keeps it, run `dvc repro` or `dvc pull` first."
        raise ModelError(error.what, f"{said} {error.hint}") from None
    if (named := _named_in(repo, root, path)) is None:
        raise ConfigError(
            f"The model '{model}' is outside of the repo '{root}'.", "Copy it in, and keep it with `dvc add`."
        )
    return named


def _named_in(repo: Path, root: Path, path: Path) -> str | None:
    """Return an absolute path relative to `repo`, with '/'; None outside of `root`."""
    path = path.parent.resolve() / path.name  # the file itself may be a link into DVC's cache
    return Path(os.path.relpath(path, repo.resolve())).as_posix() if path.is_relative_to(root) else None


def data_in(repo: Path, root: Path, data: str | None, calibration: str | None = None) -> DataParams | None:
    """Return samples, and others for calibration, as params.yaml in `repo` names them; None without samples.

    Both are relative to the working directory. Raises ConfigError for a package, for a file that is missing, and for one outside of `root`.
    """
    if data is None and calibration is not None:
        raise ConfigError("--calibration needs samples that say what it loses.", "Give --data, too.")
    if data is None:
        return None
    ranges = None if calibration is None else _samples_in(repo, root, calibration, "--calibration")
    return DataParams(source=_samples_in(repo, root, data, "--data"), calibration=ranges)


def _samples_in(repo: Path, root: Path, source: str, option: str) -> str:
    file, function = split_function(source)
    if source.startswith("pypi:"):
        raise ConfigError(
            f"{option} {source}: samples are no part of a package.",
            "Name a file, a folder or FILE.py:function that reads it.",
        )
    if not Path(file).exists():
        raise ConfigError(
            f"{option} '{file}' is missing.", "If `dvc add` keeps it, run `dvc pull` first; else correct the path."
        )
    if (named := _named_in(repo, root, Path(os.path.abspath(file)))) is None:
        raise ConfigError(
            f"The data '{file}' are outside of the repo '{root}'.", "Move them in, and keep them with `dvc add`."
        )
    return f"{named}:{function}" if function else named


def quantisation(form: str, data: DataParams | None) -> QuantizeParams:
    """Return the quantisation in a form, of a model with `data`. Raises ConfigError without samples, and for an unknown form."""
    if data is None:
        raise ConfigError(
            f"--quantize {form} needs samples of the model.", "Give --data: ranges of random inputs would be wrong."
        )
    if form not in FORMS:
        raise ConfigError(f"--quantize {form} is unknown.", did_you_mean(form, FORMS))
    return QuantizeParams.model_validate({"form": form})


def declare(
    repo: Path,
    sources: Mapping[str, str],
    options: ImportOptions = ImportOptions(),
    data: DataParams | None = None,
    form: str | None = None,
) -> dict[str, ModelParams]:
    """Declare the models with `data`, quantised in `form`, with forms of their own ports, checked against the file.

    A model that has some of the outputs of `options` keeps these alone. Raises ModelError for a model that import refuses, for a
    shape or form of no model's input, and for an output or a bound of no model.
    """
    ports = options.output_ports
    declared, inputs, results, known = {}, set[str](), set[str](), dict[str, None]()
    for name, source in sources.items():
        file = resolve_source(source if is_fetched(source) else str(repo / source))
        known |= dict.fromkeys(names := [value.name for value in read_model(file).graph.output])
        chosen = [each for each in names if each in options.outputs]
        forms = {each: ports.get(each, OutputPort()) for each in chosen} if ports else {}
        model = read_model(file, ImportOptions(outputs=chosen))
        known_inputs = [value.name for value in model.graph.input]
        known_results = {result for node in model.graph.node for result in node.output}
        inputs.update(known_inputs)
        results |= known_results
        made = ModelParams(
            source=source,
            shapes={each: list(options.shapes[each]) for each in known_inputs if each in options.shapes},
            inputs={each: port for each, port in options.input_ports.items() if each in known_inputs},
            bounds={each: bound for each, bound in options.bounds.items() if each in known_results},
            outputs=forms or tuple(chosen),
            io=options.io,
            data=data,
            quantize=None if form is None else quantisation(form, data),
        )
        try:
            import_onnx(file, ImportOptions(made.shapes, {}, made.outputs, made.inputs, made.io, made.bounds))
        except ModelError as error:
            raise ModelError(f"{source}: {error.what}", error.hint) from error
        declared[name] = made
    for unknown in sorted(set(options.outputs) - known.keys()):
        raise ModelError(f"No model has an output '{unknown}'.", did_you_mean(unknown, known))
    for unknown in sorted(options.bounds.keys() - results):
        raise ModelError(f"No model has a result '{unknown}'.", did_you_mean(unknown, results))
    for unknown in sorted({*options.shapes, *options.inputs} - inputs):
        raise ModelError(f"No model has an input '{unknown}'.", "Look at the names of the inputs again.")
    return declared
