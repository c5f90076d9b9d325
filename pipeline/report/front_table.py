"""Show ram against latency, from front.json, and against cycles, from search.json."""

from __future__ import annotations

import math

from rich.console import RenderableType

from ..search.settings import FASTEST, RAM
from ..support.sizes import format_bytes
from .fit import Name, fitted, table
from .levers import WORDS, percent

LEVER_WORDS = WORDS | {
    "tvm-default": "tvm-default's kernels",
    "rung": "some kernels split",
    "state": "other passes, kernels whole",
}

#: the time that is weighed against ram next, relative to the chosen plan's
_NEXT = 2


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
        flash = "–" if point["flash"] is None else format_bytes(point["flash"])
        time = f"{point['cycles'] / chosen['cycles']:.2f} ×" if chosen["cycles"] else "–"
        sizes = format_bytes(point["ram"]), flash, f"{point['cycles']:,}", time, percent(point["extra_compute"])
        made.add_row(Name(mark + LEVER_WORDS.get(point["lever"], point["lever"])), *sizes)
    return fitted(made, *tradeoff_lines(found))


def tradeoff_lines(found: dict) -> list[str]:
    """Name the chosen candidate, and the ram that more time would save."""
    limits = f"ram {format_bytes(found['ram'])}, flash {format_bytes(found['flash'])}"
    if found.get("max_slowdown") is not None:
        most = f"{found['max_slowdown']:g} × the time of the fastest whole kernels"
        fitting = "" if found["within"] else f"NOTHING that was tried fits {limits}; "
        return [*(slowdown_needed(found) or [f"{fitting}the least ram within {most} is taken"]), *saved_by_time(found)]
    if not found["within"]:
        return [f"NOTHING that was tried fits {limits}; the least ram is taken"]
    what = "fastest" if found["objective"] == FASTEST else "least flash"
    return [f"the {what} within {limits} is taken", *least_possible(found)]


def least_possible(found: dict) -> list[str]:
    """Name the least ram found by a search for another objective, and its option."""
    points = found["points"]
    chosen, least = points[found["chosen"]], min(points, key=lambda each: (each["ram"], each["cycles"]))
    if found["objective"] == RAM or not found["within"] or least["ram"] >= chosen["ram"]:
        return []
    why = "a budget asks for time, not for the least ram" if found["objective"] == FASTEST else "the objective is flash"
    time = f" at {least['cycles'] / chosen['cycles']:.2f} × the time" if chosen["cycles"] else ""
    return [
        f"{why}: ram {format_bytes(chosen['ram'])}; the least found is {format_bytes(least['ram'])}{time}: --objective ram"
    ]


def slowdown_needed(found: dict) -> list[str]:
    """Say that a plan above max-slowdown was taken, since no other fits; nothing otherwise."""
    chosen = found["points"][found["chosen"]]
    if (
        found.get("max_slowdown") is None
        or not found["whole"]
        or chosen["cycles"] <= found["max_slowdown"] * found["whole"]
    ):
        return []
    ram, slowdown = format_bytes(found["ram"]), _slowdown(found, chosen)
    return [f"only slower plans fit ram {ram}: {slowdown:.2f} × the time of the fastest whole kernels was NEEDED"]


def saved_by_time(found: dict) -> list[str]:
    """Say how much ram the next factor of time would save: the most within twice the time, else the next plan's."""
    if found.get("max_slowdown") is None or not found["whole"]:
        return []
    chosen = found["points"][found["chosen"]]
    less = sorted((each for each in found["points"] if each["ram"] < chosen["ram"]), key=lambda each: each["cycles"])
    if not less:
        return []
    point = [each for each in less if each["cycles"] <= _NEXT * chosen["cycles"]][-1:] or less[:1]
    factor, saved = point[0]["cycles"] / chosen["cycles"], chosen["ram"] - point[0]["ram"]
    asked = math.ceil(100 * _slowdown(found, point[0])) / 100
    return [f"{factor:.2f} × the time would save {format_bytes(saved)} of ram: --max-slowdown {asked:g}"]


def _slowdown(found: dict, point: dict) -> float:
    """Return the time of a point, relative to the fastest whole kernels."""
    return point["cycles"] / found["whole"]


def _verdict(found: dict) -> str:
    limit = f"--max-latency {found['limit']}"
    if found["limit"].endswith("x"):
        limit += f" is {_amount(found['most'], found)} {found['unit']}"
    if found["within"]:
        return f"{limit}: the least ram within it is taken"
    return f"{limit}: NOTHING that was tried is within it; the fastest is taken"


def _amount(value: float, found: dict) -> str:
    return f"{value:.0f}" if found["unit"] == "instructions" else f"{value:.3f}"
