"""Judge footprints by their limits, one verdict per line of the gate. Pure: no files, no git.

Budget (set by the deployer) and capacity (of the device) are separate lines, and so are the memories of a device that has
several. Growth is relative to an earlier revision.
Measured ram must not exceed the predicted ram by more than a tolerance.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from ..artifacts.places import REMAKE, compile_dir
from ..memory.footprint import Footprint, FootprintReport
from ..memory.limits import telling
from ..params.params import Params, declared
from ..support.sizes import format_bytes, format_pair
from .growth import Growth

#: ram, flash, a memory of the device by name, or result
Quantity = str
LimitKind = Literal["budget", "capacity", "growth", "measured", "data", "stale", "altered"]
Pair = tuple[str, str]

#: the terms of each quantity, shown below the verdicts
COUNTED = {
    "ram": "arena + workspace (+ weights, where the target cannot read them in place)",
    "flash": "weights + code",
}
#: page size in bytes, for results without one
_PAGE = 4096
QUANTITIES: tuple[Literal["ram", "flash"], ...] = ("ram", "flash")


class Capacity(Protocol):
    """Memory capacities of a target, in bytes."""

    @property
    def ram(self) -> int: ...
    @property
    def flash(self) -> int: ...


@dataclass(frozen=True)
class Verdict:
    """Hold one line of the gate. `used`, `limit` and `margin` are bytes; margin = limit - used.

    `used` and `limit` are None if the check was impossible: no data, stale or altered data, no earlier figure. Such a verdict is an
    error, not a failure. `why` is the cause in one line, with the distance to the limit.
    """

    model: str
    target: str
    quantity: Quantity
    limit_kind: LimitKind
    used: int | None
    limit: int | None
    ok: bool
    why: str

    @property
    def checked(self) -> bool:
        return self.used is not None

    @property
    def margin(self) -> int | None:
        return None if self.used is None or self.limit is None else self.limit - self.used


def judge(
    params: Params,
    results: Mapping[Pair, FootprintReport],
    capacities: Mapping[str, Capacity],
    previous: Mapping[Pair, FootprintReport] | None = None,
    growth: Growth | None = None,
    broken: Mapping[Pair, Verdict] | None = None,
    pastless: Mapping[Pair, str] | None = None,
) -> list[Verdict]:
    """Return every verdict, in the order of params.yaml.

    A declared pair missing in `results` has no data. A pair in `broken` gets that verdict alone. A pair missing in
    `previous` is not compared; if `pastless` gives a reason, that is an error.
    """
    verdicts: list[Verdict] = []
    for model, target in declared(params):
        result = results.get((model, target))
        if broken is not None and (model, target) in broken:
            verdicts.append(broken[model, target])
            continue
        if result is None:
            verdicts.append(_no_data(model, target))
            continue
        verdicts += _limits(params, result, capacities[target])
        verdicts += _measured(result)
        before = (previous or {}).get((model, target))
        if before is not None and growth is not None:
            verdicts += _growth(result, before, growth)
        elif pastless is not None and (model, target) in pastless:
            verdicts.append(unchecked(model, target, "growth", pastless[model, target]))
    return verdicts


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
    """Describe quantised models: dtypes, memory beside that of floats, agreement with the model as given."""
    return [f"{model} @ {target}: {', '.join(said)}" for (model, target), result in results.items() if (said := _quantised(result))]


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
    error = result.measured.max_rel_error
    return "its error was not measured" if error is None else f"max error {error:.1e} of the range"


def _no_data(model: str, target: str) -> Verdict:
    why = f"no data: there is no {compile_dir(model, target).as_posix()}/footprint.json. {REMAKE}"
    return unchecked(model, target, "data", why)


def unchecked(model: str, target: str, kind: LimitKind, why: str) -> Verdict:
    """Return the verdict on an unchecked pair, with the reason."""
    return Verdict(model, target, "result", kind, None, None, False, why)


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
    """Return the largest acceptable measured ram, in bytes and without the stack: the prediction + 2 % + 2 pages."""
    return best.planned_ram + best.planned_ram * 2 // 100 + 2 * page


def _growth(result: FootprintReport, before: FootprintReport, growth: Growth) -> Iterator[Verdict]:
    for quantity in QUANTITIES:
        base = getattr(before.best, quantity)
        what = f"{format_bytes(base)} + {growth.text}"
        yield _compare(result, quantity, "growth", getattr(result.best, quantity), growth.limit(base), what)


def _compare(
    result: FootprintReport, quantity: Quantity, kind: LimitKind, used: int, limit: int, what: str
) -> Verdict:
    ok = used <= limit
    distance = f"{format_bytes(limit - used)} below {what}" if ok else f"over {what} by {format_bytes(used - limit)}"
    measured = "measured " if kind == "measured" else ""
    why = f"{measured}{quantity} {distance} ({' of '.join(format_pair(used, limit))})"
    return Verdict(result.model, result.target, quantity, kind, used, limit, ok, why)
