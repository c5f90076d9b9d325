"""What `passfit profile` shows: the passes that help, hurt, or do nothing."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ..graph.sizes import format_bytes


def effects_table(effects: dict) -> RenderableType:
    """`effects` is the object of effects.json."""
    table = Table(title=f"each pass alone, added to TVM's default, on {effects['target']}", title_justify="left")
    for column, justify in (
        ("pass", "left"),
        ("ram", "right"),
        ("weights", "right"),
        ("kernels", "right"),
        ("", "left"),
    ):
        table.add_column(column, justify=justify)
    changed = [each for each in effects["passes"] if each["changed"]]
    for each in sorted(changed, key=lambda effect: (effect["delta"]["ram"], effect["spec"])):
        delta = each["delta"]
        verdict = "helps" if delta["ram"] < 0 else "hurts" if delta["ram"] > 0 else ""
        table.add_row(each["spec"], _signed(delta["ram"]), _signed(delta["weights"]), f"{delta['kernels']:+d}", verdict)
    idle = [each["spec"] for each in effects["passes"] if not each["changed"] and "failed" not in each]
    failed = [f"{each['spec']} ({each['failed']})" for each in effects["passes"] if "failed" in each]
    lines = [Text(f"change nothing: {', '.join(idle)}")] if idle else []
    lines += [Text(f"failed: {'; '.join(failed)}")] if failed else []
    return Group(table, *lines)


def _signed(nbytes: int) -> str:
    return "0" if nbytes == 0 else f"{'+' if nbytes > 0 else '−'}{format_bytes(abs(nbytes))}"
