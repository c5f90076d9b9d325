"""Commands that tell about results: report, compare."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .output import print_table


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
    """Write one HTML file with everything about the results; it needs no network."""
    from ..artifacts.html_report import REPORT, folders_page, repo_page, write_page
    from ..errors import ConfigError
    from ..params.params import load_params

    if folders and against is not None:
        raise ConfigError(
            "--against compares the results of a repo, not of folders.", "Omit it, or run `passfit compare`."
        )
    text = folders_page(folders) if folders else repo_page(Path(), load_params(Path("params.yaml")), against)
    write_page(text, out or REPORT)
    typer.echo(f"wrote {out or REPORT}")


def compare(
    before: Annotated[
        str, typer.Argument(help="earlier results: git revision, MLflow run, or folder", metavar="BEFORE")
    ],
    after: Annotated[
        str | None, typer.Argument(help="later results, named alike; default: those in this repo", metavar="AFTER")
    ] = None,
    format: Annotated[str, typer.Option("--format", help="output format: text, md or json")] = "text",
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
    for each in found:
        if format == "md":
            typer.echo(markdown(each, *names))
        else:
            print_table(compare_table(each, *names))
    for line in alone:
        typer.echo(f"- {line}" if format == "md" else line)
