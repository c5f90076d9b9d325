"""Judge footprints by their limits, one verdict per line of the gate. Pure: no files, no git.

Budget (set by the deployer) and capacity (of the device) are separate lines, and so are the memories of a device that has
several. Growth is relative to an earlier revision. Models that share a device are one line more: see `together`.
Measured ram must not exceed the predicted ram by more than a tolerance.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Literal, Protocol

from ..artifacts.places import REMAKE, compile_dir
from ..memory.footprint import Footprint, FootprintReport
from ..memory.limits import telling
from ..memory.liveness import aligned
from ..params.params import AcceptedGrowth, Params, declared
from ..support.sizes import format_bytes, format_pair
from .accuracy import Accuracies, accuracy_verdicts
from .amounts import format_amount, format_amounts
from .growth import Growth
from .verdict import LimitKind, Pair, Quantity, Verdict, unchecked_verdict

#: the terms of each quantity, shown below the verdicts
COUNTED = {
    "ram": "arena + workspace + measured stack (+ weights, where the target cannot read them in place; + other .data and .bss of an image without operating system)",
    "flash": "weights + code",
}
#: page size in bytes, for results without one
_PAGE = 4096
QUANTITIES: tuple[Literal["ram", "flash"], ...] = ("ram", "flash")
#: stands for a model in verdicts on the sum of all; no model can have that name
TOGETHER = "all models"


class Capacity(Protocol):
    """Memory capacities of a target, in bytes."""

    @property
    def ram(self) -> int: ...
    @property
    def flash(self) -> int: ...


def judge(
    params: Params,
    results: Mapping[Pair, FootprintReport],
    capacities: Mapping[str, Capacity],
    previous: Mapping[Pair, FootprintReport] | None = None,
    growth: Growth | None = None,
    broken: Mapping[Pair, Verdict] | None = None,
    pastless: Mapping[Pair, str] | None = None,
    accuracies: Accuracies = Accuracies(),
) -> list[Verdict]:
    """Return every verdict, in the order of params.yaml.

    A declared pair missing in `results` has no data. A pair in `broken` gets that verdict alone. A pair missing in
    `previous` is not compared; if `pastless` gives a reason, that is an error. `accuracies` are judged where a limit or an
    earlier one is there.
    """
    verdicts: list[Verdict] = []
    for model, target in declared(params):
        result = results.get((model, target))
        if broken is not None and (model, target) in broken:
            verdicts.append(broken[model, target])
            continue
        if result is None:
            verdicts.append(no_data(model, target))
            continue
        verdicts += _limits(params, result, capacities[target])
        verdicts += _measured(result)
        verdicts += _run_limits(params, result)
        before = (previous or {}).get((model, target))
        same = before is not None and all(getattr(before.best, q) == getattr(result.best, q) for q in QUANTITIES)
        verdicts += accuracy_verdicts(params, model, target, accuracies, same)
        if before is not None and growth is not None:
            accepted = params.targets[target].accepted_growth.get(model)
            verdicts += (_growth(result, quantity, before, growth, accepted) for quantity in QUANTITIES)
        elif pastless is not None and (model, target) in pastless:
            verdicts.append(unchecked_verdict(model, target, "growth", pastless[model, target]))
    judged = {pair: result for pair, result in results.items() if pair not in (broken or {})}
    return [*_add_entries(params, verdicts), *_together(params, judged, capacities)]


def remarks(results: Mapping[Pair, FootprintReport]) -> list[str]:
    """List the libraries that were never executed or compared, and the lossy ones: they pass, and are worth a line."""
    return [
        f"{model} @ {target}: {remark}"
        for (model, target), result in results.items()
        for remark in (
            *([] if result.measured.ran else [f"not executed ({result.measured.how})"]),
            *([result.measured.unverified] if result.measured.unverified else []),
            *(each.summary for each in result.defects),
            *([] if result.exact else [f"lossy: {_error(result)}"]),
        )
    ]


def information(results: Mapping[Pair, FootprintReport]) -> list[str]:
    """Describe quantised models: dtypes, memory next to that of floats, agreement with the model as given."""
    return [
        f"{model} @ {target}: {', '.join(said)}"
        for (model, target), result in results.items()
        if (said := _quantised(result))
    ]


def _quantised(result: FootprintReport) -> list[str]:
    found, given, said = result.quantised, result.measured.given, []
    if found is not None:
        said.append(found.summary)
        if found.integers is not None and found.floats is not None:
            said += [
                f"{name} {format_bytes(getattr(found.integers, name))} (as floats {format_bytes(getattr(found.floats, name))})"
                for name in ("ram", "weights")
            ]
    return [*said, given.summary] if given is not None and given.summary else said


def _error(result: FootprintReport) -> str:
    measured = result.measured
    return "its error was not measured" if measured.max_rel_error is None else f"max error {measured.error_summary}"


def no_data(model: str, target: str, failed: str | None = None, hint: str = REMAKE) -> Verdict:
    """Return the verdict on a pair without a result; `failed` says which stage failed, and why, `hint` what to do."""
    because = f". {hint}" if failed is None else f": {failed}"
    return unchecked_verdict(
        model, target, "data", f"no data: there is no {compile_dir(model, target).as_posix()}/footprint.json{because}"
    )


def _limits(params: Params, result: FootprintReport, capacity: Capacity) -> Iterator[Verdict]:
    budget = params.budget(result.model, result.target)
    for quantity in QUANTITIES:
        used = getattr(result.best, quantity)
        allowed = getattr(budget, quantity)
        if allowed is not None:
            yield _compare(result, quantity, "budget", used, allowed, "budget")
        yield _compare(result, quantity, "capacity", used, getattr(capacity, quantity), "the device's capacity")
    for region in telling(result.best.regions):
        if region.room is not None:
            yield _compare(result, region.name, "budget", region.used, region.room, "budget")
        yield _compare(result, region.name, "capacity", region.used, region.size, "the device's capacity")


def _measured(result: FootprintReport) -> Iterator[Verdict]:
    if result.measured.ran and result.measured.ram is not None:
        limit = _agreement(result.best, result.measured.page or _PAGE)
        what = f"the predicted {format_bytes(result.best.planned_ram)} and its tolerance"
        yield _compare(result, "ram", "measured", result.measured.ram, limit, what)


def _agreement(best: Footprint, page: int) -> int:
    """Return the largest acceptable measured ram, in bytes and without the stack: the prediction + 2 %, in whole pages, + 2 pages.

    The process gains whole pages: of a block that starts inside of a page one more, and one for the library's variables.
    """
    return aligned(best.planned_ram + best.planned_ram * 2 // 100, page) + 2 * page


def _run_limits(params: Params, result: FootprintReport) -> Iterator[Verdict]:
    """Judge the limits of a run. One that was not measured, as the latency of rpi4 under an emulator, does not pass.

    The latency of a board is the most that was estimated.
    """
    limits, measured = params.limits(result.model, result.target), result.measured
    estimated = measured.estimated if measured.latency_ms is None else None
    latency = measured.latency_ms if estimated is None else estimated.milliseconds[2]
    found = (("latency", latency), ("instructions", measured.instructions), ("stack", measured.stack))
    for quantity, used in found:
        limit = getattr(limits, quantity)
        if limit is None:
            continue
        if used is None:
            why = f"{quantity} was not measured ({measured.how}). Take its limit out of params.yaml, or limit another quantity."
            yield Verdict(result.model, result.target, quantity, "budget", None, limit, False, why)
        else:
            verdict = _compare(result, quantity, "budget", used, limit, "budget")
            if quantity == "latency" and estimated is not None:
                verdict = replace(verdict, why=f"{verdict.why}, {estimated.summary}")
            yield verdict


def _growth(
    result: FootprintReport,
    quantity: Literal["ram", "flash"],
    before: FootprintReport,
    growth: Growth,
    accepted: AcceptedGrowth | None,
) -> Verdict:
    base, used = getattr(before.best, quantity), getattr(result.best, quantity)
    verdict = replace(
        _compare(result, quantity, "growth", used, growth.limit(base), f"{format_bytes(base)} + {growth.text}"),
        base=base,
    )
    if verdict.ok:
        return verdict
    allowed = getattr(accepted, quantity) if accepted is not None else None
    if accepted is not None and allowed is not None and used <= allowed:
        said = f"growth of {quantity} from {' to '.join(format_pair(base, used))} is accepted: {accepted.reason}"
        return replace(verdict, limit=allowed, ok=True, why=said, note=said)
    more = "" if allowed is None else f"; {format_pair(allowed, used)[0]} are accepted"
    return replace(verdict, why=f"{verdict.why}{more}.")


def _add_entries(params: Params, verdicts: list[Verdict]) -> list[Verdict]:
    """Add to the first refused growth on each target the one entry of params.yaml that accepts all there."""
    refused: dict[str, list[int]] = {}
    for number, verdict in enumerate(verdicts):
        if verdict.checked and not verdict.ok and verdict.limit_kind == "growth":
            refused.setdefault(verdict.target, []).append(number)
    for target, numbers in refused.items():
        known = params.targets[target].accepted_growth
        sizes: dict[str, dict[str, int | float | None]] = {
            model: {name: getattr(each, name) for name in (*QUANTITIES, "accuracy")} for model, each in known.items()
        }
        for number in numbers:
            verdict = verdicts[number]
            sizes.setdefault(verdict.model, {})[verdict.quantity] = verdict.used
        models = ", ".join(
            f"{model}: {{{''.join(f'{name}: {used}, ' for name, used in each.items() if used is not None)}"
            f"reason: {json.dumps(known[model].reason, ensure_ascii=False) if model in known else '…'}}}"
            for model, each in sizes.items()
        )
        what = "it is" if len(numbers) == 1 else f"all growth on {target} is"
        entry = f"accepted-growth: {{{models}}} under targets.{target}{' instead' if known else ''}"
        first = verdicts[numbers[0]]
        verdicts[numbers[0]] = replace(first, why=f"{first.why} If {what} meant, write {entry}.")
    return verdicts


def notes(verdicts: Iterable[Verdict]) -> list[str]:
    """List remarks on limits that hold, such as accepted growth."""
    return [f"{verdict.model} @ {verdict.target}: {verdict.note}" for verdict in verdicts if verdict.note]


def _together(
    params: Params, results: Mapping[Pair, FootprintReport], capacities: Mapping[str, Capacity]
) -> Iterator[Verdict]:
    """Compare the sum of all models on a device with its capacity; none where a model has no result, which is an error already.

    They run one after the other, so that the largest stack counts once.
    """
    for target, choices in params.targets.items():
        found = [results[model, target].best for model in params.models if (model, target) in results]
        if not choices.together or len(found) < 2 or len(found) < len(params.models):
            continue
        ram = sum(best.planned_ram for best in found) + max(best.stack for best in found)
        shared = ram - sum(best.arena for best in found) + max(best.arena for best in found)
        advice = f" One arena for all (`bind`) leaves {format_bytes(shared)}. `together: false` says that they are not neighbours."
        sums: tuple[tuple[Literal["ram", "flash"], int, str], ...] = (
            ("ram", ram, advice),
            ("flash", sum(best.flash for best in found), ""),
        )
        for quantity, used, hint in sums:
            verdict = _judge(
                (TOGETHER, target),
                f"sum of {quantity}",
                "capacity",
                used,
                getattr(capacities[target], quantity),
                "the device's capacity",
            )
            yield verdict if verdict.ok else replace(verdict, why=f"{verdict.why}.{hint}" if hint else verdict.why)


def _compare(
    result: FootprintReport, quantity: Quantity, kind: LimitKind, used: int | float, limit: int | float, what: str
) -> Verdict:
    return _judge((result.model, result.target), quantity, kind, used, limit, what)


def _judge(
    pair: Pair, quantity: Quantity, kind: LimitKind, used: int | float, limit: int | float, what: str
) -> Verdict:
    ok = used <= limit
    far = format_amount(quantity, abs(limit - used))
    distance = f"{far} below {what}" if ok else f"over {what} by {far}"
    measured = "measured " if kind == "measured" else ""
    why = f"{measured}{quantity} {distance} ({' of '.join(format_amounts(quantity, used, limit))})"
    return Verdict(*pair, quantity, kind, used, limit, ok, why)
