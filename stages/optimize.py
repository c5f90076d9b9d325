"""Stage `optimize`: the search for the sequence that lowers a model's footprint on a target."""

from __future__ import annotations

from pathlib import Path

from passfit import api
from passfit.config import Params
from passfit.report.progress import console_progress
from passfit.results import optimize_dir
from passfit.stages._common import budget_of, canonical_model, run_stage, target_of


def optimize(params: Params, model: str, target: str) -> None:
    """Write out/optimize/MODEL/TARGET/: sequence.json, footprint.json, search.json, trajectory.json."""
    knowledge = None if params.search.knowledge is None else Path(params.search.knowledge)
    search = api.SearchSettings(**dict(params.search) | {"knowledge": knowledge})
    with console_progress() as progress:
        api.optimize(
            canonical_model(model),
            target_of(params, target),
            budget_of(params, model, target),
            out=optimize_dir(model, target),
            name=model,
            search=search,
            progress=progress,
        )


if __name__ == "__main__":
    run_stage(optimize, "model", "target")
