"""Write the page of results, of a repo, of one run, or of result folders; a repo has one of its passes, too."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ..fit.answer import int8_answer
from ..fit.verdict import FitVerdict, Sizes, TargetLimits, smallest_that_fits
from ..params.params import Params
from ..report.results import Judgement, Pair, Result, Results
from ..search.settings import SearchSettings
from ..support.text_files import write_text
from ..targets import Target
from ..targets.catalogue import load_catalogue
from .read_results import read_folders, read_repo
from .revision import earlier_results, results_at_revision

#: where the stage, and the command without --out, write it, relative to the repo
REPORT = Path("out") / "report" / "index.html"
#: effort of a quick search, in seconds of processor time, as that of `passfit fit`
_QUICK = SearchSettings(seconds=1.0)


def repo_pages(
    repo: Path, params: Params, path: Path, against: str | None = None, judged: Mapping[Pair, Judgement] | None = None
) -> Mapping[Path, str]:
    """Return the pages of a repo by their files, that of its results at `path`.

    `against` is a revision to compare with, else the last commit that differs; `judged` are the gate's verdicts.
    """
    return pages_of(replace(read_repo(repo, params), judged=judged or {}), path, repo, against)


def folders_page(folders: Sequence[Path]) -> str:
    """Return the page of result folders, which need no repo."""
    return _page(read_folders(folders))


def pages_of(results: Results, path: Path, repo: Path = Path(), against: str | None = None) -> Mapping[Path, str]:
    """Return the page of `results`, at `path`, and next to it that of their passes, each with a link to the other."""
    from ..report.html import passes_page

    results, passes = _add_advice(results, repo), path.with_name(f"{path.stem}-passes.html")
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


def _add_advice(results: Results, repo: Path) -> Results:
    """Add advice to the results of a repo that do not fit: the smallest board that would hold them, and int8."""
    catalogue = load_catalogue(repo)

    def advised(result: Result) -> Result:
        device = catalogue[result.pair[1]]
        boards = [each for each in catalogue.readable().values() if each.bare]
        return replace(result, advice=(*_larger(result, device, boards), *_int8(result, device, repo)))

    return replace(results, results=[each if each.footprint.fits else advised(each) for each in results.results])


def _larger(result: Result, device: Target, boards: Sequence[Target]) -> Iterator[str]:
    """Yield the smallest of `boards` that holds a result which is too large for its own, if that is one."""
    best = result.footprint.best
    sizes = Sizes(best.ram, 0, best.weights, best.code)
    verdicts = {each.name: FitVerdict(each.name, sizes, TargetLimits(each.ram, each.flash)) for each in boards}
    found = smallest_that_fits(verdicts.values())
    if device.name in verdicts and not verdicts[device.name].fits and found is not None:
        yield f"{found.target} is the smallest board of `passfit targets` with room for these sizes."


def _int8(result: Result, device: Target, repo: Path) -> Iterator[str]:
    """Yield that the model would fit in int8, if it does."""
    from ..fit.predicted_remedies import in_int8, int8_reach
    from .canonical_file import load_imported

    model, target = result.pair
    imported = load_imported(repo, model)
    if imported is None:
        return
    limits = TargetLimits.of(device, result.footprint.budget)
    reach = int8_reach(imported, in_int8(imported), [device], {target: limits}, _QUICK)
    if reach is not None:
        yield f"{int8_answer(reach)}."
