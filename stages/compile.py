"""Stage `compile`: the C library of a model on a target, run, compared and measured."""

from __future__ import annotations

from passfit import api
from passfit.config import Params
from passfit.report.progress import console_progress
from passfit.results import compile_dir, kept_footprint, optimize_dir, tuning_file
from passfit.stages._common import budget_of, canonical_model, copy_file, run_stage, target_of


def compile_library(params: Params, model: str, target: str) -> None:
    """Write out/compile/MODEL/TARGET/, and a copy of its footprint.json as footprints/MODEL/TARGET.json."""
    out = compile_dir(model, target)
    verify = api.VerifySettings(**params.verify.model_dump(), max_error=params.search.max_error)
    with console_progress() as progress:
        api.compile_model(
            canonical_model(model),
            target_of(params, target),
            budget_of(params, model, target),
            out=out,
            sequence=optimize_dir(model, target) / "sequence.json",
            tuning=tuning_file(model, target),
            name=model,
            verify=verify,
            progress=progress,
        )
    # DVC keeps libraries, git keeps footprints: a review sees what a change costs, and the gate has a past to look at.
    copy_file(out / "footprint.json", kept_footprint(model, target))


if __name__ == "__main__":
    run_stage(compile_library, "model", "target")
