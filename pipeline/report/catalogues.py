"""Show the catalogues of passes and targets as tables."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import RenderableType

from ..passes.sequence.catalogue import CATALOGUE
from ..support.sizes import format_bytes
from ..targets import Target, how_to_run
from .fit import Name, fitted, table


def passes_table() -> RenderableType:
    """Show every pass with its level, whether it is exact, and its summary."""
    made = table("", "<pass", "<works on", "<exact", "<what it does")
    for name, kind in CATALOGUE.items():
        levels = ", ".join(level.name.lower() for level in sorted(kind.levels))
        made.add_row(Name(name), levels, "no" if kind.lossy else "yes", kind.summary)
    return fitted(made)


def targets_table(catalogue: Mapping[str, Target]) -> RenderableType:
    """Show every target with its memories and its runner on this machine."""
    made = table("", "<target", "<device", ">ram", ">flash", "<weights", "<runs here")
    for name, target in catalogue.items():
        ram, flash = format_bytes(target.ram), format_bytes(target.flash)
        made.add_row(Name(name), target.description, ram, flash, target.weights, how_to_run(target).how)
    return fitted(made)
