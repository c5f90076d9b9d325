"""What `passfit learn` shows: the models known, what there was to gain on each, and what it will try first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from ..search.knowledge import Knowledge


def knowledge_table(knowledge: Knowledge) -> RenderableType:
    """One row per model: the best found, relative to tvm-default; below it the coreset."""
    table = Table(title="known models, best found ÷ tvm-default", title_justify="left")
    for column in ("model", "target", "graphs", "ram", "sum"):
        table.add_column(column, justify="left" if column in ("model", "target") else "right")
    for record in knowledge.records:
        best = (f"{record.best(objective):.3f}" for objective in ("ram", "sum"))
        table.add_row(record.model, record.target, str(len(record.states)), *best)
    tried = [Text(f"  {'; '.join((*each.prefix, *each.tail))}") for each in knowledge.known_sequences("ram")]
    return Group(table, Text("tried first for ram:"), *tried)
