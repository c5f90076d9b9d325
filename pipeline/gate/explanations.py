"""Name the ONNX node behind an exceeded limit, and the next lever: `passfit gate --explain`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from ..artifacts.places import compile_dir
from ..artifacts.read_results import add_kernel_times, read_folder
from ..artifacts.revision import results_at_revision
from ..errors import PassfitError
from ..params.params import Params
from ..report.arena.explain_flash import explain_flash, largest
from ..report.compare import because, compare
from ..report.compare.comparison import Comparison, shown, shown_change
from ..report.fit import nodes_in, shorten
from ..report.front_table import saved_by_time
from ..report.kernel_names import kernel_label
from ..report.results import Result
from ..support.sizes import format_bytes
from .verdicts import Pair, Verdict

#: largest buffers, or weights that grew, that are named
_NAMED = 2
#: largest parts of flash that are named
_NAMED_OF_FLASH = 3
#: characters of a name
_ROOM = 60


def explanations(repo: Path, params: Params, failures: Iterable[Verdict], against: str | None) -> tuple[str, ...]:
    """Explain the failures in sentences, one cause and one lever for each model, target and quantity.

    `against` is the revision that growth is relative to. Raises ConfigError for a malformed result.
    """
    wanted: dict[tuple[Pair, str], list[Verdict]] = {}
    for verdict in failures:
        if verdict.checked and verdict.quantity in ("ram", "flash", "latency", "instructions"):
            wanted.setdefault(((verdict.model, verdict.target), verdict.quantity), []).append(verdict)
    grown = any(each.limit_kind == "growth" for verdicts in wanted.values() for each in verdicts)
    past = _past(repo, against) if grown and against is not None else {}
    found = []
    for (pair, quantity), verdicts in wanted.items():
        result = add_kernel_times(repo, read_folder(repo / compile_dir(*pair)))
        growth = any(each.limit_kind == "growth" for each in verdicts) and pair in past
        cause = growth_cause(compare(past[pair], result), quantity) if growth else _largest(result, quantity)
        found += [
            f"{result.name}: {cause}",
            *(f"{result.name}: next: {lever}" for lever in _levers(result, quantity, params)),
        ]
    return tuple(found)


def _past(repo: Path, against: str) -> Mapping[Pair, Result]:
    """Return the results of a revision; none if one of them cannot be read, as those of an older passfit."""
    try:
        return results_at_revision(repo, against, "--against")
    except PassfitError:
        return {}


def growth_cause(found: Comparison, quantity: str) -> str:
    """Say which parts of ram or flash grew, and the buffer or the weight behind them."""
    parts = ("arena", "workspace", "stack") if quantity == "ram" else ("weights", "code")
    figures = [each for each in found.figures if each.name in parts and (each.change or 0) > 0]
    said = ", ".join(f"{each.name} {shown_change(each)} to {shown(each.after, each.unit)}" for each in figures)
    more = because(found) if quantity == "ram" else ", ".join(
        f"{shorten(each.name, _ROOM)} +{format_bytes(each.change)}" for each in found.weights[:_NAMED] if each.change > 0
    )  # fmt: skip
    passes = [*(f"− {each}" for each in found.dropped), *(f"+ {each}" for each in found.added)]
    changed = f"the sequence changed: {'; '.join(passes)}" if passes else ""
    return f"{quantity} grew: " + "; ".join(filter(None, (said, more, changed, *found.unknown)))


def _largest(result: Result, quantity: str) -> str:
    """Name the largest buffers at the peak, the largest initializers and kernels, or the slowest kernels."""
    if quantity in ("latency", "instructions"):
        return _slowest(result)
    explained = result.explanation()
    if result.saved is None or explained is None:
        return "there is no plan.json, so nothing can be named"
    if quantity == "flash":
        best = result.footprint.best
        parts = largest(explain_flash(result.saved, best), _NAMED_OF_FLASH, _ROOM)
        return f"weights take {format_bytes(best.weights)}, code {format_bytes(best.code)}" + (
            f"; the largest parts: {', '.join(parts)}" if parts else ""
        )
    named = ", ".join(_name(each.name, each.nbytes, each.nodes) for each in explained.alive[:_NAMED])
    where = "" if explained.peak is None else f" is at {kernel_label(explained.peak.step, explained.peak.kernel)},"
    return f"the peak{where} of {format_bytes(explained.alive_bytes)}: {named}"


def _slowest(result: Result) -> str:
    """Name the kernels that take the most time, or the reason if none is timed."""
    if result.kernels is None or result.why_untimed:
        return f"its kernels are not timed: {result.why_untimed}"
    total = max(1, result.kernels["run_ns"])
    slowest = sorted(result.kernels["kernels"], key=lambda each: (-each["ns"], each["step"]))[:_NAMED]
    named = (
        f"{kernel_label(each['step'], each['kernel'])} {each['ns'] / total:.0%}"
        + (f" of {nodes_in(tuple(each['nodes']), _ROOM)}" if each["nodes"] else "")
        for each in slowest
    )
    return f"the kernels that take the most of its time: {', '.join(named)}"


def _name(name: str, nbytes: int, nodes: tuple[str, ...]) -> str:
    return f"{shorten(name, _ROOM)} {format_bytes(nbytes)}" + (f" of {nodes_in(nodes, _ROOM)}" if nodes else "")


def _levers(result: Result, quantity: str, params: Params) -> Iterator[str]:
    """Yield levers for ram, flash, or time."""
    target = params.targets[result.footprint.target]
    if quantity in ("latency", "instructions"):
        unused = ([] if target.opt == "speed" else [f"opt: speed under targets.{result.footprint.target}"]) + (
            [] if params.tune.seconds else ["tune: {seconds: 60}"]
        )
        yield f"{', '.join([*unused, 'or a larger budget of ram, which admits faster plans'])}, in params.yaml"
        return
    if quantity == "flash":
        settings = {
            "objective: flash under search": params.search.objective,
            f"opt: size under targets.{result.footprint.target}": target.opt,
        }
        unused = [name for name, value in settings.items() if value not in ("flash", "size")]
        yield (
            f"{' or '.join(unused)} in params.yaml"
            if unused
            else "fewer or smaller weights: the search minimises flash already"
        )
        return
    explained, tradeoff = result.explanation(), (result.search or {}).get("tradeoff")
    slower = saved_by_time(tradeoff) if isinstance(tradeoff, dict) else []
    if slower or explained is None:
        yield from slower
        return
    further = explained.levers.further if explained.levers else None
    yield explained.advice[-1 if further is not None and further.arena < explained.arena else 0]
