"""Show ram against latency, from front.json, and against cycles, from search.json."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import RenderableType

from ..fit.remedies import remedies_of_search
from ..memory.footprint import Footprint
from ..search.settings import FASTEST, FLASH, RAM
from ..support.sizes import format_bytes
from .fit import Name, fitted, table
from .levers import WORDS, percent

LEVER_WORDS = WORDS | {
    "tvm-default": "tvm-default's kernels",
    "rung": "some kernels split",
    "state": "other passes, kernels whole",
}


def front_table(found: dict) -> RenderableType:
    """Show the points on the front, and the chosen one; `found` is the object of front.json."""
    made = table("ram against latency", "<", ">ram", f">{found['unit']}", ">extra compute")
    for number in found["pareto"]:
        point = found["points"][number]
        words = LEVER_WORDS.get(point["lever"], point["lever"])
        mark = "→ " if number == found["chosen"] else "  "
        sizes = format_bytes(point["ram"]), _amount(point["latency"], found), percent(point["extra_compute"])
        made.add_row(Name(mark + words), *sizes)
    return fitted(made, _verdict(found))


def tradeoff_table(found: dict) -> RenderableType:
    """Show the candidates by ram, with their cost beside the chosen one's; `found` is `tradeoff` of search.json."""
    made = table(
        "ram against time, by the model of cycles", "<", ">ram", ">flash", ">cycles", ">time", ">extra compute"
    )
    chosen = found["points"][found["chosen"]]
    for number, point in enumerate(found["points"]):
        mark = "→ " if number == found["chosen"] else "  "
        flash = "–" if point.get("flash") is None else format_bytes(point["flash"])
        time = f"{point['cycles'] / chosen['cycles']:.2f} ×" if chosen["cycles"] else "–"
        sizes = format_bytes(point["ram"]), flash, f"{point['cycles']:,}", time, percent(point["extra_compute"])
        made.add_row(Name(mark + LEVER_WORDS.get(point["lever"], point["lever"])), *sizes)
    return fitted(made, *tradeoff_lines(found))


def tradeoff_lines(found: dict) -> list[str]:
    """Name the chosen candidate, by the limits as they were given: the stack has its part of ram."""
    stack, least = found.get("stack", 0), "flash" if found["objective"] == FLASH else "ram"
    room = f", {format_bytes(stack)} of it for the stack" if stack else ""
    limits = f"ram {format_bytes(found['ram'] + stack)}{room}, flash {format_bytes(found['flash'])}"
    within = ""
    if found.get("max_slowdown") is not None:
        within = f" within {found['max_slowdown']:g} × the time of the fastest whole kernels"
    if needed := slowdown_needed(found):
        return needed
    if not found["within"]:
        return [f"NOTHING that was tried fits {limits}; the least {least}{within} is taken"]
    if found["objective"] == RAM:
        return [f"the least ram{within} is taken"]
    return [f"the {'fastest' if found['objective'] == FASTEST else 'least flash'} within {limits} is taken"]


def remedy_lines(search: Mapping[str, Any] | None, best: Footprint, in_params: bool = False) -> list[str]:
    """Say which settings of a search lower the ram of its library; `search` is the object of search.json."""
    found = remedies_of_search(search or {}, best)
    return [f"less ram: {each.say(best.ram, best.flash, in_params)}" for each in found]


def slowdown_needed(found: dict) -> list[str]:
    """Say that a plan above max-slowdown was taken, since no other fits; nothing otherwise."""
    chosen = found["points"][found["chosen"]]
    if (
        found.get("max_slowdown") is None
        or not found["whole"]
        or chosen["cycles"] <= found["max_slowdown"] * found["whole"]
    ):
        return []
    ram, slowdown = format_bytes(found["ram"] + found.get("stack", 0)), chosen["cycles"] / found["whole"]
    return [f"only slower plans fit ram {ram}: {slowdown:.2f} × the time of the fastest whole kernels was NEEDED"]


def _verdict(found: dict) -> str:
    limit = f"--max-latency {found['limit']}"
    if found["limit"].endswith("x"):
        limit += f" is {_amount(found['most'], found)} {found['unit']}"
    if found["within"]:
        return f"{limit}: the least ram within it is taken"
    return f"{limit}: NOTHING that was tried is within it; the fastest is taken"


def _amount(value: float, found: dict) -> str:
    return f"{value:.0f}" if found["unit"] == "instructions" else f"{value:.3f}"
