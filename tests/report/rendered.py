"""A report as people read it."""

from __future__ import annotations

import io

from rich.console import Console, RenderableType


def rendered(report: RenderableType, width: int = 1000) -> str:
    """Render as the command line does into a file or a pipe, which keeps long lines as they are."""
    console = Console(width=width, soft_wrap=True, file=io.StringIO(), color_system=None)
    console.print(report)
    return console.file.getvalue()


def words(report: RenderableType) -> str:
    """Render without line breaks."""
    return " ".join(rendered(report).split())
