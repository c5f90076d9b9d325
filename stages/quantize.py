"""Stage `quantize`: quantise the file of a model by its samples, before it is imported."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from passfit import api
from passfit.artifacts.origin import import_options
from passfit.artifacts.places import quantised_model
from passfit.errors import ConfigError
from passfit.params.params import Params
from passfit.report.progress import console_progress
from passfit.stages._common import entry, run_stage
from passfit.targets import get_target


def quantize(params: Params, model: str, file: str) -> str:
    """Write out/quantize/MODEL/model.onnx, quantize.json and curve.svg from FILE, the float model.

    Sizes of the curve are those on the first target of params.yaml. Raises ConfigError without samples.
    """
    declared, out = entry(params, "models", model), quantised_model(model)
    asked = declared.quantize
    if asked is None:
        raise ConfigError(
            f"params.yaml: models.{model}.quantize is missing.", "Add it, such as `quantize: {form: int8}`."
        )
    if declared.data is None:
        raise ConfigError(
            f"params.yaml: models.{model} has no samples to quantise by.", f"Add `data:` under models.{model}."
        )
    out.parent.mkdir(parents=True, exist_ok=True)
    settings = api.QuantiseSettings(
        asked.form, asked.method, asked.samples, asked.max_accuracy_loss, declared.io or asked.io
    )
    target = next(iter(params.targets), None)
    with console_progress() as progress:
        found = api.quantize(
            file,
            declared.data.source,
            out,
            settings=settings,
            target=None if target is None else get_target(target, Path()),
            metric=declared.data.metric,
            calibration=declared.data.calibration,
            progress=progress,
            **replace(import_options(declared), io=None).keywords(),
        )
    taken = found.taken
    return f"{model}: {taken.name}, loses {taken.loss:.4f} of {found.metric} on {found.judged} samples"


if __name__ == "__main__":
    run_stage(quantize, "model", "file")
