"""Stage `optimize`: search for the pass sequence with the smallest footprint on a target."""

from __future__ import annotations

from passfit import api
from passfit.artifacts.origin import search_settings
from passfit.artifacts.places import canonical_model, optimize_dir
from passfit.params.params import Params
from passfit.report.progress import console_progress
from passfit.search.settings import aim_of, goal_of
from passfit.stages._common import budget_of, read_json, run_stage, target_of
from passfit.stages._lines import optimize_line


def optimize(params: Params, model: str, target: str) -> str:
    """Write out/optimize/MODEL/TARGET/: sequence.json, footprint.json, search.json, trajectory.json.

    The budget is passed on only if the search reads it; else footprint.json shows none.
    """
    search, budget = search_settings(params), budget_of(params, model, target)
    device = target_of(params, model, target)
    reads = goal_of(search, budget, device) is not None or aim_of(search, budget, device) is not None
    out = optimize_dir(model, target)
    with console_progress() as progress:
        report = api.optimize(
            canonical_model(model),
            device,
            budget if reads else None,
            out=out,
            name=model,
            search=search,
            progress=progress,
            compiled_next=True,
        )
    return optimize_line(report, read_json(out / "search.json"))


if __name__ == "__main__":
    run_stage(optimize, "model", "target")
