"""Write the page of results, of a repo, of one run, or of result folders; a repo has one of its passes, too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ..params.params import Params
from ..report.results import Pair, Results
from ..support.text_files import write_text
from .read_results import read_folders, read_repo
from .revision import earlier_results, results_at_revision

#: where the stage, and the command without --out, write it, relative to the repo
REPORT = Path("out") / "report" / "index.html"


def repo_pages(repo: Path, params: Params, path: Path, against: str | None = None) -> Mapping[Path, str]:
    """Return the pages of a repo by their files, that of its results at `path`.

    `against` is a revision to compare with, else the last commit that differs.
    """
    return pages_of(read_repo(repo, params), path, repo, against)


def folders_page(folders: Sequence[Path]) -> str:
    """Return the page of result folders, which need no repo."""
    return _page(read_folders(folders))


def pages_of(results: Results, path: Path, repo: Path = Path(), against: str | None = None) -> Mapping[Path, str]:
    """Return the page of `results`, at `path`, and next to it that of their passes, each with a link to the other."""
    from ..report.html import passes_page

    passes = path.with_name(f"{path.stem}-passes.html")
    return {path: _page(results, repo, against, passes.name), passes: passes_page(results, path.name)}


def _page(results: Results, repo: Path = Path(), against: str | None = None, passes: str = "") -> str:
    """Return the page of `results`, compared with a revision; by default with the last in git that differ."""
    from ..report.html import page

    if against is None:
        return page(replace(results, before=earlier_results(repo, results)), passes)
    found = results_at_revision(repo, against, "--against")
    return page(replace(results, before={pair: (against, each) for pair, each in found.items()}, since=against), passes)


def run_page(repo: Path, params: Params, pair: Pair) -> str:
    """Return the page of one model on one target of a repo."""
    return _page(read_repo(repo, params, pair))


def write_pages(pages: Mapping[Path, str]) -> None:
    """Write pages, into new folders if need be. Raises OutputError."""
    for path, text in pages.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, text)
