"""Show the catalogues of passes, targets and known models as tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rich.console import RenderableType

from ..passes.sequence.catalogue import CATALOGUE
from ..support.sizes import format_bytes
from ..targets import Target, how_to_run
from .fit import Name, fitted, table

if TYPE_CHECKING:
    from ..search.knowledge import Knowledge


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


def knowledge_table(knowledge: Knowledge) -> RenderableType:
    """Show `passfit learn`: a row per model, its best relative to tvm-default; below them the coreset."""
    made = table("known models, best found ÷ tvm-default", "<model", "<family", "<target", ">graphs", ">ram", ">sum")
    for record in knowledge.records:
        best = (f"{record.best(objective):.3f}" for objective in ("ram", "sum"))
        made.add_row(Name(record.model), Name(record.family), Name(record.target), str(len(record.states)), *best)
    tried = [f"  {'; '.join((*each.prefix, *each.tail))}" for each in knowledge.known_sequences("ram")]
    return fitted(made, "tried first for ram:", *tried)
