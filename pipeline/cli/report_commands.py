"""Commands that tell about results: report, compare."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def report(
    folders: Annotated[
        list[Path] | None, typer.Argument(help="result folders of `passfit compile`; default: this repo", metavar="DIR...")
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
        raise ConfigError("--against compares the results of a repo, not of folders.", "Omit it, or run `passfit compare`.")
    text = folders_page(folders) if folders else repo_page(Path(), load_params(Path("params.yaml")), against)
    write_page(text, out or REPORT)
    typer.echo(f"wrote {out or REPORT}")
