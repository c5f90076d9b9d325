"""Stage `tune`: find faster schedules for the kernels of a model on a target; off by default."""

from __future__ import annotations

import sys
from pathlib import Path

from passfit import api
from passfit.artifacts.origin import tune_record
from passfit.artifacts.places import ASKED, canonical_model, optimize_dir, tuning_file
from passfit.params.params import Params
from passfit.report.progress import console_progress
from passfit.stages._common import entry, run_stage, write_json
from passfit.targets import get_target, how_to_run


def tune(params: Params, model: str, target: str) -> str:
    """Write out/tune/MODEL/TARGET/tuning.json, and the settings asked for to asked.json beside it.

    Nothing is tuned, in no time, if tune.seconds is 0 or the target's programs do not run here.
    """
    entry(params, "models", model)
    entry(params, "targets", target)
    out, device = tuning_file(model, target), get_target(target, Path())
    write_json(out.with_name(ASKED), tune_record(params))
    seconds, runner = params.tune.seconds, how_to_run(device)
    if seconds and runner.command is None:
        unmeasured = f"kernels cannot be measured here ({runner.how}), and keep the rules' schedules"
        sys.stderr.write(f"passfit: {target}: {unmeasured}.\n")
        seconds = 0.0
    with console_progress() as progress:
        found = api.tune(
            canonical_model(model),
            device,
            out,
            sequence=optimize_dir(model, target) / "sequence.json",
            settings=api.TuneSettings(seconds, params.tune.seed),
            name=model,
            progress=progress,
        )
    if not seconds:
        return f"{model} @ {target}: not tuned"
    return f"{model} @ {target}: {len(found.choices)} of {len(found.kernels)} kernels tuned, {found.how}"


if __name__ == "__main__":
    run_stage(tune, "model", "target")
