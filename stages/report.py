"""Stage `report`: write one HTML file with everything about the results."""

from __future__ import annotations

from pathlib import Path

from passfit.artifacts.html_report import REPORT, repo_page, write_page
from passfit.params.params import Params
from passfit.stages._common import run_stage
from passfit.support.sizes import format_bytes


def report(params: Params) -> str:
    """Write out/report/index.html."""
    text = repo_page(Path(), params)
    write_page(text, REPORT)
    return f"{REPORT}: {format_bytes(len(text.encode()))}"


if __name__ == "__main__":
    run_stage(report)
