"""What `passfit profile` shows: the passes that help or hurt alone, and what passes do to each other."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from .pictures.heat_map import implicit, signed
from .spec_names import shown

#: pairs listed of each kind; the rest is in effects.json
ROWS = 6
PAIRS = "\nOne pass after another; bytes: what the second one adds (+) or saves (−) more than it does alone."
_TITLES = {
    "enables": "the first makes the second possible",
    "disables": "the first leaves the second nothing to do",
    "strengthens": "the second does more good after the first",
    "weakens": "the second does less good after the first",
}


def effects_table(effects: dict, seconds: float, clock: Mapping[str, float]) -> RenderableType:
    """`effects` is the object of effects.json, which took `seconds` to find; `clock` has those of each pass alone."""
    tried = effects["tried"]
    idle = [shown(each["spec"]) for each in effects["passes"] if not each["changed"] and "failed" not in each]
    failed = [f"{shown(each['spec'])} ({each['failed']})" for each in effects["passes"] if "failed" in each]
    lines = [Text(f"change nothing: {', '.join(idle)}")] if idle else []
    lines += [Text(f"failed: {'; '.join(failed)}")] if failed else []
    pairs = [table for kind in _TITLES if (table := _pairs(effects, kind)) is not None]
    cost = f"{tried['passes']} passes alone and {tried['pairs']} pairs: {tried['states']} states in {seconds:.1f} s"
    lines += [Text(PAIRS)] if pairs else []
    return Group(_alone(effects, clock), *lines, *pairs, Text(cost))


def _alone(effects: dict, clock: Mapping[str, float]) -> Table:
    title = f"each pass alone, added to TVM's default, on {effects['target']}"
    table = Table(title=title, title_justify="left")
    for column in ("pass", "ram", "sum", "weights", "kernels", "ms", ""):
        table.add_column(column, justify="left" if column in ("pass", "") else "right")
    changed = [each for each in effects["passes"] if each["changed"]]
    for each in sorted(changed, key=lambda effect: (effect["delta"]["ram"], effect["delta"]["sum"], effect["spec"])):
        delta = each["delta"]
        moved = delta["ram"] or delta["sum"]
        verdict = "helps" if moved < 0 else "hurts" if moved > 0 else ""
        sizes = (signed(delta[field]) for field in ("ram", "sum", "weights"))
        table.add_row(escape(shown(each["spec"])), *sizes, f"{delta['kernels']:+d}", _milliseconds(each, clock), verdict)
    return table


def _milliseconds(effect: dict, clock: Mapping[str, float]) -> str:
    return f"{1000 * clock[effect['spec']]:.0f}" if effect["spec"] in clock else ""


def _pairs(effects: dict, kind: str) -> Table | None:
    """The pairs of one kind, the largest first: how much more or less the second pass leaves than it does alone."""
    pairs = [pair for pair in effects["pairs"] if pair["effect"] == kind]
    if not pairs:
        return None
    pairs.sort(key=lambda pair: ([-abs(nbytes) for nbytes in implicit(pair)], pair["first"], pair["second"]))
    table = Table(title=f"{kind} ({len(pairs)}): {_TITLES[kind]}", title_justify="left", box=None, show_header=False)
    for pair in pairs[:ROWS]:
        ram, total = implicit(pair)
        names = (escape(shown(pair[place])) for place in ("first", "second"))
        table.add_row(" → ".join(names), f"ram {signed(ram)}", f"sum {signed(total)}")
    if len(pairs) > ROWS:
        table.add_row(f"{len(pairs) - ROWS} more")
    return table
