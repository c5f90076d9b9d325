"""Stage `import`: turn a model file into canonical ONNX."""

from __future__ import annotations

from pathlib import Path

from passfit import api
from passfit.artifacts.origin import import_options
from passfit.artifacts.places import canonical_model
from passfit.errors import ConfigError
from passfit.frontend.source.source import is_package
from passfit.params.params import Params
from passfit.scaffold import check_watched, imported_file
from passfit.stages._common import entry, run_stage
from passfit.stages._lines import import_line


def import_model(params: Params, model: str, file: str) -> str:
    """Write out/models/MODEL/model.onnx and origin.json from FILE.

    dvc.yaml names FILE so that DVC watches it. Raises ConfigError if params.yaml names another file, or dvc.yaml does
    not watch its side files.
    """
    declared = entry(params, "models", model)
    if (expected := imported_file(model, declared)) != file:
        raise ConfigError(
            f"dvc.yaml watches '{file}' for the model '{model}', but params.yaml says '{expected}'.",
            f"Write `{model}: {expected}` under stages.import.foreach in dvc.yaml.",
        )
    if Path("dvc.yaml").exists() and declared.quantize is None:
        check_watched(model, declared.source, Path("dvc.yaml"))
    package = declared.source if is_package(declared.source) else ""
    out = canonical_model(model)
    return import_line(model, api.import_model_file(file, out, import_options(declared), package))


if __name__ == "__main__":
    run_stage(import_model, "model", "file")
