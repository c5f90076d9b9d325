"""Stage `profile`: measure the effect of each pass on a model, alone and after every other."""

from __future__ import annotations

from pathlib import Path

from passfit import api
from passfit.artifacts.places import canonical_model, profile_dir
from passfit.params.params import Params
from passfit.report.progress import console_progress
from passfit.stages._common import run_stage
from passfit.stages._lines import profile_line
from passfit.targets.catalogue import get_target


def profile(params: Params, model: str, target: str) -> str:
    """Write out/profile/MODEL/effects.json, for TARGET."""
    out = profile_dir(model) / "effects.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    with console_progress() as progress:
        found = api.profile(canonical_model(model), get_target(target, Path()), out, name=model, progress=progress)
    return profile_line(model, found)


if __name__ == "__main__":
    run_stage(profile, "model", "target")
