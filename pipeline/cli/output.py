"""Print tables, and the report of a library with the exit code it means."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ..support.strictness import spare

if TYPE_CHECKING:
    from ..memory.footprint import FootprintReport

#: exit codes: a result exceeds its limits; bad usage or input; a bug of passfit; nobody reads the output, as by SIGPIPE
DOES_NOT_FIT, BAD_INPUT, BUG, CLOSED_PIPE = 1, 2, 3, 141
_WIDE = 1000


def show_report(report: FootprintReport, out: Path, searched: bool = True, front: bool = False) -> None:
    """Print the report and the search's tables. Exits with DOES_NOT_FIT if a limit is exceeded."""
    spare("the report", lambda: _print_report(report, out, searched, front), lambda why: None, but=BrokenPipeError)
    if not report.fits:
        raise typer.Exit(DOES_NOT_FIT)


def _print_report(report: FootprintReport, out: Path, searched: bool, front: bool) -> None:
    from ..report.footprint_table import footprint_table
    from ..report.front_table import front_table, remedy_lines, tradeoff_table
    from ..report.search_table import search_table
    from ..support.text_files import decode, read_text

    print_table(footprint_table(report))
    _print_assumed(out / "manifest.json")
    if searched:
        file = out / "search.json"
        found = decode(dict, read_text(file, ""), str(file), "")
        print_table(search_table(found))
        if "tradeoff" in found:
            print_table(tradeoff_table(found["tradeoff"]))
        for line in remedy_lines(found, report.best):
            print_table(line)
        if front:
            file = out / "front.json"
            print_table(front_table(decode(dict, read_text(file, ""), str(file), "")))


def _print_assumed(manifest: Path) -> None:
    """Say how seeded inputs were drawn if random values mean little, and how to give real ones."""
    from ..support.text_files import decode, read_text

    if not manifest.is_file():
        return
    inputs = decode(dict, read_text(manifest, ""), str(manifest), "").get("io", {}).get("inputs", [])
    assumed = [f"'{each['name']}' as {each['assumed']}" for each in inputs if "assumed" in each]
    if assumed:
        typer.echo(f"compared on drawn inputs: {'; '.join(assumed)}. Real ones: --data SAMPLES.")


def print_table(renderable: object) -> None:
    """Print a table of rich."""
    from rich.console import Console

    # never wrap output for a pipe: programs read it
    Console(width=None if sys.stdout.isatty() else _WIDE, soft_wrap=not sys.stdout.isatty()).print(renderable)
