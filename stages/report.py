"""Stage `report`: write one HTML file with everything about the results, and the data of DVC's plots."""

from __future__ import annotations

from pathlib import Path

from passfit.artifacts.html_report import REPORT, page_of, write_page
from passfit.artifacts.plots import PLOTS, write_plots
from passfit.artifacts.read_results import read_repo
from passfit.params.params import Params
from passfit.stages._common import run_stage
from passfit.support.sizes import format_bytes


def report(params: Params) -> str:
    """Write out/report/index.html and out/report/plots/."""
    results = read_repo(Path(), params)
    text = page_of(results)
    write_plots(results, PLOTS)
    write_page(text, REPORT)
    return f"{REPORT}: {format_bytes(len(text.encode()))}"


if __name__ == "__main__":
    run_stage(report)
