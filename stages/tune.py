"""Stage `tune`: find faster schedules for the kernels of a model on a target, if params.yaml asks for it."""

from __future__ import annotations

import sys
from pathlib import Path

from passfit import api
from passfit.artifacts.origin import tune_record
from passfit.artifacts.places import ASKED, canonical_model, optimize_dir, tuning_file
from passfit.params.params import Params
from passfit.report.progress import console_progress
from passfit.stages._common import entry, run_stage, write_json
from passfit.targets import get_target
from passfit.tuning.tune_model import why_unmeasured


def tune(params: Params, model: str, target: str) -> str:
    """Write out/tune/MODEL/TARGET/tuning.json, and the settings asked for to asked.json beside it.

    Nothing is tuned, in no time, if the seconds for the target are 0 or its kernels cannot be measured.
    """
    entry(params, "models", model)
    entry(params, "targets", target)
    out, device = tuning_file(model, target), get_target(target, Path())
    write_json(out.with_name(ASKED), tune_record(params, target))
    asked, unmeasured = params.tuning(target), why_unmeasured(device)
    seconds = 0.0 if unmeasured else asked.seconds
    if asked.seconds and unmeasured:
        sys.stderr.write(
            f"passfit: {target}: kernels keep the rules' schedules: they cannot be measured {unmeasured}.\n"
        )
    with console_progress() as progress:
        found = api.tune(
            canonical_model(model),
            device,
            out,
            sequence=optimize_dir(model, target) / "sequence.json",
            settings=api.TuneSettings(seconds, asked.seed),
            name=model,
            progress=progress,
        )
    if not seconds:
        return f"{model} @ {target}: not tuned"
    return f"{model} @ {target}: {len(found.choices)} of {len(found.kernels)} kernels tuned, {found.how}"


if __name__ == "__main__":
    run_stage(tune, "model", "target")
