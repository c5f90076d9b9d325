"""Name the ONNX node behind an exceeded limit, and its remedies: `passfit gate --explain`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from ..artifacts.origin import search_settings
from ..artifacts.places import compile_dir
from ..artifacts.read_results import add_kernel_times, read_folder
from ..artifacts.revision import results_at_revision
from ..errors import PassfitError
from ..fit.answer import fit_answer
from ..fit.remedies import INT8, Int8Reach, Remedy, faster_remedies, remedies_of_search
from ..fit.similar_target import Known, carry
from ..fit.verdict import FitVerdict, Sizes, TargetLimits, smallest_that_fits
from ..memory.footprint import Budget, Footprint
from ..params.params import Params
from ..report.arena.explain_flash import explain_flash, largest
from ..report.compare import because, compare
from ..report.compare.comparison import Comparison, shown, shown_change
from ..report.fit import nodes_in, shorten
from ..report.kernel_names import kernel_label
from ..report.results import Json, Result
from ..search.settings import aim_of
from ..support.sizes import format_bytes
from ..targets import Catalogue, Target
from .accuracy import Accuracies
from .accuracy_causes import accuracy_causes
from .verdict import ACCURACIES, Pair, Verdict

#: largest buffers, or weights that grew, that are named
_NAMED = 2
#: largest parts of flash that are named
_NAMED_OF_FLASH = 3
#: characters of a name
_ROOM = 60


def explanations(
    repo: Path,
    params: Params,
    catalogue: Catalogue,
    failures: Iterable[Verdict],
    against: str | None,
    accuracies: Accuracies = Accuracies(),
) -> tuple[str, ...]:
    """Explain the failures in sentences: for each model, target and quantity the cause, and all that lowers it.

    `against` is the revision that growth is relative to. Raises ConfigError for a malformed result.
    """
    wanted: dict[tuple[Pair, str], list[Verdict]] = {}
    failures = [each for each in failures if each.checked]
    for verdict in failures:
        if verdict.quantity in ("ram", "flash", "latency", "instructions"):
            wanted.setdefault(((verdict.model, verdict.target), verdict.quantity), []).append(verdict)
    grown = any(each.limit_kind == "growth" for verdicts in wanted.values() for each in verdicts)
    past = _past(repo, against) if grown and against is not None else {}
    found, answered = [], set[Pair]()
    for (pair, quantity), verdicts in wanted.items():
        result = add_kernel_times(repo, read_folder(repo / compile_dir(*pair)))
        growth = any(each.limit_kind == "growth" for each in verdicts) and pair in past
        cause = growth_cause(compare(past[pair], result), quantity) if growth else _largest(result, quantity)
        device = params.targets[pair[1]].apply(catalogue[pair[1]], pair[0])
        limits = TargetLimits(*(_least_limit(verdicts, quantity, name) for name in ("ram", "flash")))
        again, remedies = _levers(repo, device, result, quantity, params)
        said = [cause, *again, *_said(remedies, result.footprint.best, quantity, limits, bool(again))]
        if quantity in ("ram", "flash") and pair not in answered:
            answered.add(pair)
            said += _answer(params, catalogue, device, result, remedies)
        found += [f"{result.name}: {each}" for each in said]
    for pair in dict.fromkeys((each.model, each.target) for each in failures if each.quantity in ACCURACIES):
        report, before = accuracies.now[pair].report, accuracies.past.get(pair)
        if report is not None:
            causes = accuracy_causes(params, report, None if isinstance(before, str) else before)
            found += [f"{pair[0]} @ {pair[1]}: {each}" for each in causes]
    return tuple(found)


def _least_limit(verdicts: Iterable[Verdict], quantity: str, name: str) -> int:
    """Return the least exceeded limit of ram or flash; without one, more than any device has."""
    limits = [int(each.limit) for each in verdicts if name == quantity and each.limit is not None]
    return min(limits, default=1 << 62)


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
    return f"the peak{where} of {format_bytes(explained.live_bytes)}: {named}"


def _slowest(result: Result) -> str:
    """Name the nodes of most cycles on a board, else the kernels that take the most time, or the reason if none is timed."""
    nodes = result.nodes()
    if nodes is not None and nodes.cycles:
        most = ((each.name, each.cycles[1]) for each in nodes.parts[:_NAMED] if each.cycles)
        shares = (f"{shorten(name, _ROOM)} {cycles / nodes.cycles:.0%}" for name, cycles in most)
        return f"the nodes of most cycles, estimated: {', '.join(shares)}"
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


def _levers(
    repo: Path, device: Target, result: Result, quantity: str, params: Params
) -> tuple[list[str], list[Remedy]]:
    """Return the settings, or changes of the model, that lower a quantity; before them whether to search again."""
    best, search = result.footprint.best, (result.search if result.levers is not None else None) or {}
    aim = aim_of(search_settings(params), params.budget(*result.pair), device)
    again = []
    if search and _limits(search) != (None if aim is None else (aim.objective, aim.ram, aim.flash)):
        again, search = ["next: `dvc repro`: it was searched for other limits than those of params.yaml now"], {}
    remedies = _remedies(repo, device, result, search, quantity, params)
    return again, [each for each in remedies if each.lowers(quantity, best.ram, best.flash)]


def _said(remedies: list[Remedy], best: Footprint, quantity: str, limits: TargetLimits, again: bool) -> Iterator[str]:
    """Say by how much remedies lower a quantity; else that none does, unless a search `again` might."""
    if not remedies and not again:
        yield "no setting that could be tried lowers it"
    for remedy in remedies:
        enough = ""
        if quantity in ("ram", "flash"):
            within = getattr(remedy, quantity) <= getattr(limits, quantity)
            enough = ", which is enough" if within else ", which is not enough"
        yield f"next: {remedy.say(best.ram, best.flash, in_params=True)}{enough}"


def _answer(
    params: Params, catalogue: Catalogue, device: Target, result: Result, remedies: Iterable[Remedy]
) -> Iterator[str]:
    """Say what the device lacks, which of its kind would hold the model, by sizes scaled to it, and what int8 would do."""
    model, best = result.pair[0], result.footprint.best
    limits = TargetLimits.of(device, params.budget(*result.pair))
    if not (lacking := limits.lacking(best.ram, best.flash)):
        return
    copied = 0 if device.weights == "in-place" else best.weights
    known = Known(device, Sizes(best.arena, best.workspace, best.weights, best.code, best.stack, 0, copied))
    others = []
    for name, each in catalogue.readable().items():
        if name != device.name and each.bare == device.bare:
            own = params.budget(model, name) if name in params.targets else Budget()
            others.append(FitVerdict(name, carry(known, each), TargetLimits.of(each, own)))
    fitting = smallest_that_fits(others)
    int8 = next((each for each in remedies if each.name == INT8 and each.fits(limits)), None)
    reach = None if int8 is None else Int8Reach(device.name, int8.ram, int8.flash)
    yield fit_answer(None if fitting is None else fitting.target, device.name, lacking, reach)


def _limits(search: Json) -> tuple[str, int, int] | None:
    """Return objective, ram and flash that a search counted within; None without limits."""
    tradeoff = search.get("tradeoff")
    return None if tradeoff is None else (tradeoff["objective"], tradeoff["ram"], tradeoff["flash"])


def _remedies(
    repo: Path, device: Target, result: Result, search: Json, quantity: str, params: Params
) -> Iterator[Remedy]:
    """Yield the remedies found by the search of a result, and predicted ones of its imported model."""
    model, target = result.pair
    best, budget, settings = result.footprint.best, params.budget(model, target), search_settings(params)
    if quantity == "ram":
        yield from remedies_of_search(search, best)
    if result.passes is None:
        return
    from ..artifacts.canonical_file import load_imported
    from ..fit.predicted_remedies import in_int8, int8_remedy, smaller_code, timed_remedies

    imported = load_imported(repo, model)
    if imported is None:
        return
    if quantity == "flash":
        yield from smaller_code(imported, device, result.passes, best)
    if quantity in ("ram", "flash"):
        yield from int8_remedy(imported.name, in_int8(imported), device, budget, settings, best.stack)
    else:
        own = f"budgets.{model}" if model in params.targets[target].budgets else "budget"
        faster = faster_remedies(search, best, f"targets.{target}.{own}", device.ram)
        yield from timed_remedies(imported, device, result.passes, best, quantity, faster)
