"""Show ram against latency, from front.json."""

from __future__ import annotations

from rich.console import RenderableType

from ..support.sizes import format_bytes
from .fit import Name, fitted, table
from .levers import WORDS, percent

_WORDS = WORDS | {"tvm-default": "tvm-default's kernels", "rung": "some kernels split"}


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


def _verdict(found: dict) -> str:
    limit = f"--max-latency {found['limit']}"
    if found["limit"].endswith("x"):
        limit += f" is {_amount(found['most'], found)} {found['unit']}"
    if found["within"]:
        return f"{limit}: the least ram within it is taken"
    return f"{limit}: NOTHING that was tried is within it; the fastest is taken"


def _amount(value: float, found: dict) -> str:
    return f"{value:.0f}" if found["unit"] == "instructions" else f"{value:.3f}"
