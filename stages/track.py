"""Stage `track`: log the results of the other stages to MLflow."""

from __future__ import annotations

import sys
from pathlib import Path

from passfit.gate import why_refused
from passfit.params.params import Params
from passfit.stages._common import OUT, run_stage, write_json
from passfit.tracking import track as log


def track(params: Params) -> str:
    """Log every result to MLflow (idempotent), register what the gate passes, and write out/track.json: runs by content, and warnings.

    What is refused fails no stage: the gate does.
    """
    result = log(Path(), params, why_refused(Path(), params))
    warnings = [*result.refused, *result.warnings]
    write_json(OUT / "track.json", {"runs": {run.name: run.content for run in result.runs}, "warnings": warnings})
    for link in result.links:
        sys.stdout.write(f"{link}\n")
    for warning in warnings:
        sys.stderr.write(f"passfit: {warning}\n")
    new = sum(run.new for run in result.runs)
    return f"runs in MLflow: {len(result.runs)}, new: {new}"


if __name__ == "__main__":
    run_stage(track)
