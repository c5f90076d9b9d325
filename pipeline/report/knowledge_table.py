"""Show `passfit learn`: the known models, the gain on each, and the sequences tried first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import RenderableType

from .fit import Name, fitted, table

if TYPE_CHECKING:
    from ..search.knowledge import Knowledge


def knowledge_table(knowledge: Knowledge) -> RenderableType:
    """Show a row per model, its best relative to tvm-default; below them the coreset."""
    made = table("known models, best found ÷ tvm-default", "<model", "<family", "<target", ">graphs", ">ram", ">sum")
    for record in knowledge.records:
        best = (f"{record.best(objective):.3f}" for objective in ("ram", "sum"))
        made.add_row(Name(record.model), Name(record.family), Name(record.target), str(len(record.states)), *best)
    tried = [f"  {'; '.join((*each.prefix, *each.tail))}" for each in knowledge.known_sequences("ram")]
    return fitted(made, "tried first for ram:", *tried)
