"""The catalogues of passes and targets, as tables."""

from __future__ import annotations

from collections.abc import Mapping

from rich.table import Table

from ..passes.sequence.catalogue import CATALOGUE
from ..support.sizes import format_bytes
from ..targets import Target, how_to_run


def passes_table() -> Table:
    table = Table()
    for column in ("pass", "works on", "exact", "what it does"):
        table.add_column(column)
    for name, kind in CATALOGUE.items():
        levels = ", ".join(level.name.lower() for level in sorted(kind.levels))
        table.add_row(name, levels, "no" if kind.lossy else "yes", kind.summary)
    return table


def targets_table(catalogue: Mapping[str, Target]) -> Table:
    table = Table()
    for column in ("target", "device", "ram", "flash", "weights", "runs here"):
        table.add_column(column)
    for name, target in catalogue.items():
        ram, flash = format_bytes(target.ram), format_bytes(target.flash)
        table.add_row(name, target.description, ram, flash, target.weights, how_to_run(target).how)
    return table
