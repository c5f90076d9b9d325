"""Stage `evaluate`: run a library on the samples of its model, and compare it with the file."""

from __future__ import annotations

from passfit import api
from passfit.artifacts.origin import import_options
from passfit.artifacts.places import (
    accuracy_file,
    canonical_model,
    compile_dir,
    given_model,
    kept_accuracy,
)
from passfit.artifacts.write import write_accuracy
from passfit.errors import ConfigError
from passfit.params.params import Params
from passfit.report.progress import console_progress
from passfit.scaffold.render import model_file
from passfit.stages._common import copy_file, entry, run_stage, target_of
from passfit.stages._lines import accuracy_line


def evaluate(params: Params, model: str, target: str) -> str:
    """Write out/evaluate/MODEL/TARGET/accuracy.json, and the copy kept in git.

    The library is that of the stage `compile`, the file that of the stage `import`; where the stage `quantize` made it, the
    source in params.yaml is the original. Raises ConfigError without `data` in params.yaml.
    """
    declared = entry(params, "models", model)
    if declared.data is None:
        raise ConfigError(
            f"params.yaml: models.{model}.data is missing: the stage `evaluate` needs samples.",
            "Add `data: {source: FILE}` there, or remove the stage from dvc.yaml.",
        )
    lossy = declared.quantize is not None or import_options(declared).output_ports
    with console_progress() as progress:
        (report,) = api.evaluate(
            canonical_model(model),
            [target_of(params, model, target)],
            declared.data.source,
            result=compile_dir(model, target),
            given=given_model(model),
            original=model_file(model, declared.source) if lossy else None,
            settings=api.EvaluateSettings(
                declared.data.metric,
                emulated=declared.data.emulated,
                tolerance=params.verify.tolerance,
                max_error=params.search.max_error,
            ),
            progress=progress,
            **import_options(declared).keywords(),
        )
    place = accuracy_file(model, target)
    write_accuracy(report, place)
    copy_file(place, kept_accuracy(model, target))
    return accuracy_line(report)


if __name__ == "__main__":
    run_stage(evaluate, "model", "target")
