"""Commands that tell about results: report, compare."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .output import print_table

if TYPE_CHECKING:
    from ..report.compare import Comparison


def report(
    folders: Annotated[
        list[Path] | None,
        typer.Argument(help="result folders of `passfit compile`; default: this repo", metavar="DIR..."),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", help="write this file; default: out/report/index.html")] = None,
    against: Annotated[
        str | None, typer.Option("--against", help="compare with this git revision; default: the last that differs")
    ] = None,
) -> None:
    """Write an HTML file with everything about the results; it needs no network.

    That of a repo has one of its passes next to it.
    """
    from ..artifacts.html_report import REPORT, folders_page, repo_pages, write_pages
    from ..errors import ConfigError
    from ..params.params import load_params

    if folders and against is not None:
        raise ConfigError(
            "--against compares the results of a repo, not of folders.", "Omit it, or run `passfit compare`."
        )
    path = out or REPORT
    if folders:
        pages = {path: folders_page(folders)}
    else:
        from ..gate import judge_repo

        params = load_params(Path("params.yaml"))
        pages = dict(repo_pages(Path(), params, path, against, judge_repo(Path(), params)))
    write_pages(pages)
    typer.echo(f"wrote {path}")


def compare(
    before: Annotated[
        str, typer.Argument(help="earlier results: git revision, MLflow run, or folder", metavar="BEFORE")
    ],
    after: Annotated[
        str | None, typer.Argument(help="later results, named alike; default: those in this repo", metavar="AFTER")
    ] = None,
    format: Annotated[str, typer.Option("--format", help="output format: text, md or json")] = "text",
    every: Annotated[
        bool, typer.Option("--all", help="show pairs that are unchanged too; default: count them in one line")
    ] = False,
) -> None:
    """Compare two results: figures, sequence, the buffers and ONNX nodes that grew.

    A folder is one that `passfit compile` wrote, or a repo.
    Plans of a revision come from DVC's cache or remote, if they are there.
    """
    import json

    from ..errors import ConfigError, did_you_mean
    from ..report.compare import as_json, compare_table, markdown, pairs_of
    from ..report.compare import compare as compare_results
    from .results_named import results_named

    if format not in (formats := ("text", "md", "json")):
        raise ConfigError(f"--format {format}: there is no such format.", did_you_mean(format, formats))
    names = before, after or "now"
    pairs, alone = pairs_of(results_named(before), results_named(after or "."), names)
    found = [compare_results(*each) for each in pairs]
    if format == "json":
        data = {"comparisons": [as_json(each, *names) for each in found], "not_compared": list(alone)}
        typer.echo(json.dumps(data, indent=2, ensure_ascii=False))
        return
    same = [] if every else [each for each in found if each.same]
    for each in found:
        if each in same:
            continue
        if format == "md":
            typer.echo(markdown(each, *names))
        else:
            print_table(compare_table(each, *names))
    for line in (*_unchanged(same), *alone):
        typer.echo(f"- {line}" if format == "md" else line)


def _unchanged(same: Sequence[Comparison]) -> Iterator[str]:
    """Count the pairs without a difference in one line, and say what could not be compared of them."""
    if same:
        yield f"{len(same)} pair{'s' if len(same) > 1 else ''} unchanged: `passfit compare --all` shows all"
    for why, count in Counter(why for each in same for why in each.unknown).items():
        yield f"not compared in {count} of them: {why}"
