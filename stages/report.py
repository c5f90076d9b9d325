"""Stage `report`: write a page with everything about the results, one of the passes, and the data of DVC's plots."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from passfit.artifacts.html_report import REPORT, pages_of, write_pages
from passfit.artifacts.plots import PLOTS, write_plots
from passfit.artifacts.read_results import read_repo
from passfit.gate import judge_repo
from passfit.params.params import Params
from passfit.stages._common import run_stage
from passfit.support.sizes import format_bytes


def report(params: Params) -> str:
    """Write out/report/index.html, index-passes.html and plots/."""
    results = replace(read_repo(Path(), params), judged=judge_repo(Path(), params))
    pages = pages_of(results, REPORT)
    write_plots(results, PLOTS)
    write_pages(pages)
    return f"{REPORT}: {format_bytes(len(pages[REPORT].encode()))}"


if __name__ == "__main__":
    run_stage(report)
