"""Show ram against latency, from front.json, and against cycles, from search.json."""

from __future__ import annotations

from rich.console import RenderableType

from ..support.sizes import format_bytes
from .fit import Name, fitted, table
from .levers import WORDS, percent

_WORDS = WORDS | {"tvm-default": "tvm-default's kernels", "rung": "some kernels split", "state": "other passes, kernels whole"}


def front_table(found: dict) -> RenderableType:
    """Show the points on the front, and the chosen one; `found` is the object of front.json."""
    made = table("ram against latency", "<", ">ram", f">{found['unit']}", ">extra compute")
    for number in found["pareto"]:
        point = found["points"][number]
        words = _WORDS.get(point["lever"], point["lever"])
        mark = "→ " if number == found["chosen"] else "  "
        sizes = format_bytes(point["ram"]), _amount(point["latency"], found), percent(point["extra_compute"])
        made.add_row(Name(mark + words), *sizes)
    return fitted(made, _verdict(found))


def tradeoff_table(found: dict) -> RenderableType:
    """Show the candidates by ram, with their cost beside the chosen one's; `found` is `tradeoff` of search.json."""
    made = table("ram against time, by the model of cycles", "<", ">ram", ">flash", ">cycles", ">time", ">extra compute")
    chosen = found["points"][found["chosen"]]
    for number, point in enumerate(found["points"]):
        mark = "→ " if number == found["chosen"] else "  "
        flash = "–" if point["flash"] is None else format_bytes(point["flash"])
        time = f"{point['cycles'] / chosen['cycles']:.2f} ×" if chosen["cycles"] else "–"
        sizes = format_bytes(point["ram"]), flash, f"{point['cycles']:,}", time, percent(point["extra_compute"])
        made.add_row(Name(mark + _WORDS.get(point["lever"], point["lever"])), *sizes)
    limits = f"ram {format_bytes(found['ram'])}, flash {format_bytes(found['flash'])}"
    if not found["within"]:
        return fitted(made, f"NOTHING that was tried fits {limits}; the least ram is taken")
    what = "fastest" if found["objective"] == "fastest-within-budget" else "least flash"
    return fitted(made, f"the {what} within {limits} is taken; a smaller budget costs the time shown")


def _verdict(found: dict) -> str:
    limit = f"--max-latency {found['limit']}"
    if found["limit"].endswith("x"):
        limit += f" is {_amount(found['most'], found)} {found['unit']}"
    if found["within"]:
        return f"{limit}: the least ram within it is taken"
    return f"{limit}: NOTHING that was tried is within it; the fastest is taken"


def _amount(value: float, found: dict) -> str:
    return f"{value:.0f}" if found["unit"] == "instructions" else f"{value:.3f}"
