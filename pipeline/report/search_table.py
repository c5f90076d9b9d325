"""Show the search of `passfit optimize`: its levers, its extent, the worth of each pass; and the models that `passfit learn` knows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import RenderableType

from ..search.refine.lever import Lever
from .effects_table import signed
from .fit import Name, fitted, table
from .levers import levers_table

if TYPE_CHECKING:
    from ..search.knowledge import Knowledge

_FIELDS = ("ram", "weights", "kernels", "sum")


def search_table(found: dict) -> RenderableType:
    """Show a search; `found` is the object of search.json."""
    made = table("what leaving a pass out would cost", "<pass", *(f">{field}" for field in _FIELDS))
    for worth in found["ablation"]:
        made.add_row(Name(worth["spec"]), *(_change(worth[field], field) for field in _FIELDS))
    lines = [_extent(found), *_ending(found)]
    lines += [f"refused: {specs}: {why}" for specs, why in found["rejected"].items()]
    if found["failures"]:
        lines.append(f"sequences that failed: {len(found['failures'])}, see search.json")
    levers = [levers_table(tuple(Lever(**each) for each in found["levers"]))] if found["levers"] else []
    if found["next"] and levers:
        lines.append(f"no more extra compute was tried: {found['next']}")
    return fitted(*levers, *([made] if found["ablation"] else []), *lines)


def _change(value: int | None, field: str) -> str:
    if value is None:
        return "fails"
    if value == 0:
        return "–"
    return f"{'+' if value > 0 else '−'}{abs(value)}" if field == "kernels" else signed(value)


def _ending(found: dict) -> list[str]:
    """Say that the effort ended the search."""
    more = "the best so far is built; --seconds allows more"
    if found.get("ended_by") == "clock":
        return [f"ENDED BY THE CLOCK, so that another run may find another plan; {more}"]
    return [f"the effort was used up: {more}"] if found.get("ended_by") else []


def _extent(found: dict) -> str:
    family = f" ({found['family']})" if found.get("family") else ""
    states = f"{found['strategy']}{family}: {found['evaluations']} states evaluated"
    return f"{states}, closed: none of these actions leads to anything better" if found["closed"] else states


def knowledge_table(knowledge: Knowledge) -> RenderableType:
    """Show a row per model, its best relative to tvm-default; below them the coreset."""
    made = table("known models, best found ÷ tvm-default", "<model", "<family", "<target", ">graphs", ">ram", ">sum")
    for record in knowledge.records:
        best = (f"{record.best(objective):.3f}" for objective in ("ram", "sum"))
        made.add_row(Name(record.model), Name(record.family), Name(record.target), str(len(record.states)), *best)
    tried = [f"  {'; '.join((*each.prefix, *each.tail))}" for each in knowledge.known_sequences("ram")]
    return fitted(made, "tried first for ram:", *tried)
