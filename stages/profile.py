"""Stage `profile`: what each pass does to a model, alone and after every other."""

from __future__ import annotations

from pathlib import Path

from passfit import api
from passfit.config import Params
from passfit.report.progress import console_progress
from passfit.results import profile_dir
from passfit.stages._common import canonical_model, run_stage
from passfit.targets.catalogue import get_target


def profile(params: Params, model: str, target: str) -> None:
    """Write out/profile/MODEL/effects.json and its picture effects.svg, as seen on TARGET."""
    out = profile_dir(model) / "effects.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    with console_progress() as progress:
        api.profile(canonical_model(model), get_target(target, Path()), out, name=model, progress=progress)


if __name__ == "__main__":
    run_stage(profile, "model", "target")
