"""Stage `compile`: build, run, compare and measure the C library of a model on a target."""

from __future__ import annotations

from passfit import api
from passfit.artifacts.origin import provenance_of, verify_settings
from passfit.artifacts.places import (
    ORIGIN,
    REMAKE,
    canonical_model,
    compile_dir,
    given_model,
    optimize_dir,
    tuning_file,
)
from passfit.errors import ConfigError
from passfit.params.params import Params
from passfit.report.progress import console_progress
from passfit.stages._common import entry, run_stage, target_of
from passfit.stages._lines import compile_line
from passfit.support.text_files import decode, read_text


def compile_library(params: Params, model: str, target: str) -> str:
    """Write out/compile/MODEL/TARGET/. It reads no budget: the stage `footprint` applies it.

    Raises ConfigError for a dvc.yaml of before imports kept the model as given.
    """
    entry(params, "models", model)
    given = given_model(model)
    if not given.is_file():
        raise ConfigError(
            f"'{given}' is missing: the library is compared with it, but dvc.yaml does not keep it.",
            "Run `passfit init --force` to write dvc.yaml again, then `dvc repro`.",
        )
    with console_progress() as progress:
        report = api.compile_model(
            canonical_model(model),
            target_of(params, model, target),
            out=compile_dir(model, target),
            sequence=optimize_dir(model, target) / "sequence.json",
            tuning=tuning_file(model, target) if params.tuning(target).seconds else None,
            name=model,
            given=given,
            origin=provenance_of(params, model, _given_digest(model)),
            verify=verify_settings(params),
            progress=progress,
        )
    return compile_line(report)


def _given_digest(model: str) -> str:
    """Return the sha256 of the files that an import was given; empty where a dvc.yaml of before does not bring its record."""
    record = canonical_model(model).with_name(ORIGIN)
    if not record.is_file():
        return ""
    return decode(dict, read_text(record, REMAKE), str(record), REMAKE).get("made_from", {}).get("model", "")


if __name__ == "__main__":
    run_stage(compile_library, "model", "target")
