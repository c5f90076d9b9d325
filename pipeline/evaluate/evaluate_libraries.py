"""Evaluate the libraries of a model on samples: those of a result folder, or compiled for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..data.accuracy import AccuracyReport
from ..data.samples import read_samples
from ..errors import ConfigError
from ..frontend.canonical.lengths.fixed_outputs import fix_outputs
from ..frontend.given_model import given_model
from ..frontend.imported_model import import_onnx
from ..frontend.input_forms import input_forms
from ..frontend.source.import_options import ImportOptions
from ..frontend.source.model_record import model_record
from ..frontend.source.source import resolve_source
from ..support.progress import Progress, silent
from ..support.temporary_folder import scratch_folder
from ..targets import Target
from .evaluation import Evaluation
from .open_result import REMAKE, OpenedResult, open_result
from .settings import EvaluateSettings


def evaluate_libraries(
    model: str | Path,
    targets: Sequence[Target],
    data: str | Path,
    build: Callable[..., object],
    result: Path | None,
    original: str | Path | None,
    given: Path | None,
    options: ImportOptions,
    settings: EvaluateSettings,
    progress: Progress,
    remark: Callable[[str], None],
) -> list[AccuracyReport]:
    """Evaluate a model on samples; `build` compiles its library for a target into a folder `out`, without a `result`.

    Arguments and errors are those of `api.evaluate`.
    """
    opened = None if result is None else open_result(result)
    if opened is not None:
        options = options if options.given else recorded_options(opened)
        check_same_model(opened, result or Path(), model, options if given is None else ImportOptions())
    evaluation = open_evaluation(model, data, settings, given, original, options, progress)
    for text in evaluation.remarks:
        remark(text)
    reports = []
    for target in targets:
        with scratch_folder() as folder:
            if opened is None:
                build(target, out=folder / "library")
            found = opened or open_result(folder / "library")
            reports.append(evaluation.report(found, str(found.manifest["model"]), target, remark))
    return reports


def open_evaluation(
    model: str | Path,
    data: str | Path,
    settings: EvaluateSettings = EvaluateSettings(),
    given: Path | None = None,
    original: str | Path | None = None,
    options: ImportOptions = ImportOptions(),
    progress: Progress = silent,
) -> Evaluation:
    """Run a model's file on samples; `original` is the float one behind it.

    `given` is that file where `model` is canonical: then `options` are those of the original alone. Raises ModelError, ConfigError.
    """
    canonical, _ = import_onnx(model, options if given is None else ImportOptions())
    reference = given_model(resolve_source(str(model)), options) if given is None else given_model(given)
    reference = reference and fix_outputs(reference, canonical)
    samples = read_samples(data, input_forms(reference or canonical))
    behind = None
    if original is not None:
        # without what the device's form of outputs loses; a file of floats has no integers to leave
        plain = replace(options, io=None, outputs=tuple(options.outputs))
        behind = given_model(resolve_source(str(original)), plain)
        if behind is None:
            raise ConfigError(f"'{original}' is canonical, not an original.", "Give the file of the float model.")
    other = None if behind is None else (behind, read_samples(data, input_forms(behind)))
    return Evaluation(canonical, reference, samples, settings, progress, other)


def check_same_model(opened: OpenedResult, folder: Path, model: str | Path, options: ImportOptions) -> None:
    """Check that a result was compiled of a model's file, with the choices of its import. Raises ConfigError."""
    recorded = opened.manifest.get("made_from", {})
    now = model_record(resolve_source(str(model)), str(model), options)
    differing = [key for key in now if key != "source" and (recorded.get(key) or None) != (now[key] or None)]
    if differing:
        said = "of another file" if differing[0] == "model" else f"with other {differing[0]}"
        raise ConfigError(f"'{folder}' was compiled {said} than '{model}'.", REMAKE)


def recorded_options(opened: OpenedResult) -> ImportOptions:
    """Return the choices of the import that a result was compiled with."""
    recorded = opened.manifest.get("made_from", {})
    outputs, forms = recorded.get("outputs", ()), recorded.get("forms", {})
    further: dict[str, Any] = {name: recorded[name] for name in ("inputs", "io", "bounds") if recorded.get(name)}
    kept = {name: forms.get(name, {}) for name in (outputs or forms)} if forms else tuple(outputs)
    return ImportOptions(recorded.get("shapes", {}), recorded.get("fix", {}), kept, **further)
