"""Ram against latency, as front.json tells it."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ..support.sizes import format_bytes
from .levers import WORDS, percent

_WORDS = WORDS | {"tvm-default": "tvm-default's kernels", "rung": "some kernels split"}


def front_table(found: dict) -> RenderableType:
    """`found` is the object of front.json: the points on the front, and what was chosen."""
    table = Table(title="ram against latency", title_justify="left", title_style="bold")
    for column, justify in (("", "left"), ("ram", "right"), (found["unit"], "right"), ("extra compute", "right")):
        table.add_column(column, justify=justify)
    for number in found["pareto"]:
        point = found["points"][number]
        words = _WORDS.get(point["lever"], point["lever"])
        mark = "→ " if number == found["chosen"] else "  "
        table.add_row(mark + words, format_bytes(point["ram"]), _amount(point["latency"], found), percent(point["extra_compute"]))
    return Group(table, Text(_verdict(found)))


def _verdict(found: dict) -> str:
    limit = f"--max-latency {found['limit']}"
    if found["limit"].endswith("x"):
        limit += f" is {_amount(found['most'], found)} {found['unit']}"
    if found["within"]:
        return f"{limit}: the least ram within it is taken"
    return f"{limit}: NOTHING that was tried is within it; the fastest is taken"


def _amount(value: float, found: dict) -> str:
    return f"{value:.0f}" if found["unit"] == "instructions" else f"{value:.3f}"
