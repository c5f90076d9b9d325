"""Write the page of results: of a repo, of one run, or of result folders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ..params.params import Params
from ..report.results import Pair, Results
from ..support.text_files import write_text
from .read_results import read_folders, read_repo
from .revision import earlier_results, results_at_revision

#: where the stage, and the command without --out, write it, relative to the repo
REPORT = Path("out") / "report" / "index.html"


def repo_page(repo: Path, params: Params, against: str | None = None) -> str:
    """Return the page of a repo; `against` is a revision to compare with, else the last commit that differs."""
    return page_of(read_repo(repo, params), repo, against)


def folders_page(folders: Sequence[Path]) -> str:
    """Return the page of result folders, which need no repo."""
    return page_of(read_folders(folders))


def page_of(results: Results, repo: Path = Path(), against: str | None = None) -> str:
    """Return the page of `results`, compared with a revision; by default with the last in git that differ."""
    from ..report.html import page

    if against is None:
        return page(replace(results, before=earlier_results(repo, results)))
    found = results_at_revision(repo, against, "--against")
    return page(replace(results, before={pair: (against, each) for pair, each in found.items()}, since=against))


def run_page(repo: Path, params: Params, pair: Pair) -> str:
    """Return the page of one model on one target of a repo."""
    return page_of(read_repo(repo, params, pair))


def write_page(text: str, path: Path) -> None:
    """Write a page, into a new folder if need be. Raises OutputError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, text)
