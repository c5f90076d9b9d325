"""Show `passfit profile`: passes that help or hurt alone, and the effects of passes on each other."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import RenderableType
from rich.table import Table

from ..passes.sequence.sequence import TVM_DEFAULT
from ..support.sizes import format_bytes
from .fit import Name, fitted, table

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
    """Show the object of effects.json, which took `seconds` to find; `clock` has those of each pass alone."""
    tried = effects["tried"]
    idle = [shown(each["spec"]) for each in effects["passes"] if not each["changed"] and "failed" not in each]
    failed = [f"{shown(each['spec'])} ({each['failed']})" for each in effects["passes"] if "failed" in each]
    lines = [f"change nothing: {', '.join(idle)}"] if idle else []
    lines += [f"failed: {'; '.join(failed)}"] if failed else []
    pairs = [table for kind in _TITLES if (table := _pairs(effects, kind)) is not None]
    cost = f"{tried['passes']} passes alone and {tried['pairs']} pairs: {tried['states']} states in {seconds:.1f} s"
    lines += [PAIRS] if pairs else []
    return fitted(_alone(effects, clock), *lines, *pairs, cost)


def _alone(effects: dict, clock: Mapping[str, float]) -> Table:
    title = f"each pass alone, added to TVM's default, on {effects['target']}"
    made = table(title, "<pass", ">ram", ">sum", ">weights", ">kernels", ">ms", "<")
    changed = [each for each in effects["passes"] if each["changed"]]
    for each in sorted(changed, key=lambda effect: (effect["delta"]["ram"], effect["delta"]["sum"], effect["spec"])):
        delta = each["delta"]
        moved = delta["ram"] or delta["sum"]
        verdict = "helps" if moved < 0 else "hurts" if moved > 0 else ""
        sizes = (signed(delta[field]) for field in ("ram", "sum", "weights"))
        made.add_row(Name(shown(each["spec"])), *sizes, f"{delta['kernels']:+d}", _milliseconds(each, clock), verdict)
    return made


def _milliseconds(effect: dict, clock: Mapping[str, float]) -> str:
    return f"{1000 * clock[effect['spec']]:.0f}" if effect["spec"] in clock else ""


def _pairs(effects: dict, kind: str) -> Table | None:
    """List the pairs of one kind, the largest first: the second pass's bytes beyond those it leaves alone."""
    pairs = [pair for pair in effects["pairs"] if pair["effect"] == kind]
    if not pairs:
        return None
    pairs.sort(key=lambda pair: ([-abs(nbytes) for nbytes in implicit(pair)], pair["first"], pair["second"]))
    made = table(f"{kind} ({len(pairs)}): {_TITLES[kind]}", "<", ">", ">")
    made.box, made.show_header = None, False
    for pair in pairs[:ROWS]:
        ram, total = implicit(pair)
        names = (shown(pair[place]) for place in ("first", "second"))
        made.add_row(Name(" → ".join(names)), f"ram {signed(ram)}", f"sum {signed(total)}")
    if len(pairs) > ROWS:
        made.add_row(f"{len(pairs) - ROWS} more")
    return made


def shown(spec: str) -> str:
    """Name a pass by its spec, a whole lowering by its difference from TVM's default."""
    passes = spec.split("; ")
    if len(passes) == 1:
        return spec
    names = {each.partition("{")[0] for each in passes}
    differing = [each for each in passes if each not in TVM_DEFAULT]
    missing = [each for each in TVM_DEFAULT if each not in names]
    return ", ".join(differing + [f"without {each}" for each in missing]) or spec


def implicit(pair: dict) -> tuple[int, int]:
    """Return a pair's implicit change of ram and of the sum of tensors, in bytes; `pair` is one of effects.json."""
    delta, alone = pair["delta"], pair["alone"]
    return delta["ram"] - alone["ram"], delta["sum"] - alone["sum"]


def signed(nbytes: int) -> str:
    """Write bytes with their sign: `0`, `−1.5 KiB`, `+300 B`."""
    return "0" if nbytes == 0 else f"{'+' if nbytes > 0 else '−'}{format_bytes(abs(nbytes))}"
