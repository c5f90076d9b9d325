"""Find remedies for ram or time: other settings of a search, tried on the candidates that it left.

search.json: candidates with ram and cycles ─► what other settings choose among them ─► those that gain

`predicted_remedies` finds what no candidate tells. A setting that holds already, or changes nothing, is no remedy.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..memory.footprint import Footprint
from ..search.settings import FASTEST, RAM, SearchSettings
from ..search.tradeoff import CYCLE_MARGIN
from ..support.sizes import format_pair
from .verdict import TargetLimits

#: the change of the model that every prediction tries
INT8 = "the model quantised to int8 (QDQ)"
#: the time that is weighed against ram first, relative to the chosen plan's
_NEXT = 2
#: least gain of time, as a fraction: models and runs tell no less apart
_LEAST = 0.05


@dataclass(frozen=True)
class Setting:
    """Entry of params.yaml in a section, and option of the command line; a value of None lifts a limit."""

    section: str
    key: str
    value: str | int | float | None

    @property
    def option(self) -> str:
        """Return the option of `passfit compile`."""
        if "budget" in self.section:
            return f"--budget {self.key}={self.value}"
        return f"--{self.key} {'none' if self.value is None else self.value}"

    @property
    def entry(self) -> str:
        """Return the entry of params.yaml."""
        return f"{self.key}: {'null' if self.value is None else self.value}"


@dataclass(frozen=True)
class Remedy:
    """Change with its predicted ram and flash in bytes; `time` is relative to the present plan, 0 where it is not known.

    `name` says what is to be done or paid, `settings` how; there are none for a change of the model. `extra_compute` is
    additional arithmetic, as a fraction, `passes` are those of another plan, if they are known.
    """

    name: str
    settings: tuple[Setting, ...]
    ram: int
    flash: int
    time: float = 0.0
    extra_compute: float = 0.0
    passes: tuple[str, ...] = ()

    @property
    def options(self) -> str:
        """Return the settings as options of `passfit compile`."""
        return " ".join(each.option for each in self.settings)

    @property
    def entries(self) -> str:
        """Return the settings as entries of params.yaml."""
        sections: dict[str, list[str]] = {}
        for each in self.settings:
            sections.setdefault(each.section, []).append(each.entry)
        return " and ".join(f"{', '.join(entries)} under {section}" for section, entries in sections.items())

    def fits(self, limits: TargetLimits) -> bool:
        """Return whether the change makes the model fit."""
        return self.ram <= limits.ram and self.flash <= limits.flash

    def lowers(self, quantity: str, ram: int, flash: int) -> bool:
        """Return whether the change lowers "ram" or "flash", of so many bytes, or another quantity: the time."""
        if quantity in ("ram", "flash"):
            return self.ram < ram if quantity == "ram" else self.flash < flash
        return 0 < self.time < 1 - _LEAST

    def say(self, ram: int, flash: int, in_params: bool = False) -> str:
        """Name the change, and its effect on `ram` and `flash` in bytes, and of the time."""
        how = self.options
        if in_params and self.settings:
            how = f"{self.entries} in params.yaml"
        sizes = (("ram", self.ram, ram), ("flash", self.flash, flash))
        said = [f"{name} {' instead of '.join(format_pair(new, old))}" for name, new, old in sizes if new != old]
        paid = [f"{self.time:.2f} × the time"] if self.time else []
        paid += [f"{100 * self.extra_compute:.1f} % extra arithmetic"] if self.extra_compute else []
        return f"{how or self.name}: " + " at ".join(filter(None, (", ".join(said), " and ".join(paid))))


@dataclass(frozen=True)
class Int8Reach:
    """Smallest target that holds the model in int8 (QDQ), with its predicted ram and flash in bytes.

    `loss` of the `metric` is measured on so many samples in ONNX Runtime, all layers in int8; None without samples. `io` is the
    form of its inputs and outputs, empty for that of the file.
    """

    target: str
    ram: int
    flash: int
    metric: str = ""
    loss: float | None = None
    samples: int = 0
    io: str = ""


def remedies_of_search(search: Mapping[str, Any], best: Footprint) -> list[Remedy]:
    """Return the settings that lower the ram of a library with the footprint `best`; `search` is the object of its search.json."""
    tradeoff = search.get("tradeoff")
    if isinstance(tradeoff, Mapping) and tradeoff.get("points"):
        return list(_slower(search, tradeoff, best))
    further = further_of(search.get("levers") or (), best.ram)
    if further is None or search.get("objective") != RAM or _asked(search, "max-latency") is not None:
        return []
    return [_more_arithmetic(further, best, 0, ())]


def faster_remedies(search: Mapping[str, Any], best: Footprint, section: str, capacity: int) -> list[Remedy]:
    """Return the settings for the fastest candidate; `section` is that of the budget, `capacity` the device's ram in bytes."""
    tradeoff = search.get("tradeoff")
    if not isinstance(tradeoff, Mapping) or not tradeoff.get("points"):
        return []
    points, chosen = tradeoff["points"], tradeoff["points"][tradeoff["chosen"]]
    beside = best.ram - chosen["ram"]
    fitting = [each for each in points if each["ram"] + max(beside, tradeoff.get("stack", 0)) <= capacity]
    most = (1 + CYCLE_MARGIN) * min((each["cycles"] for each in fitting), default=0)
    point = min((each for each in fitting if each["cycles"] <= most), key=lambda each: each["ram"], default=chosen)
    if point["cycles"] >= chosen["cycles"]:
        return []
    wider = point["ram"] > tradeoff["ram"]
    settings = [Setting("search", "objective", FASTEST)] if tradeoff["objective"] != FASTEST else []
    settings += [Setting(section, "ram", point["ram"] + tradeoff.get("stack", 0))] if wider else []
    time, passes = point["cycles"] / chosen["cycles"], tuple(point["passes"])
    found = Remedy("more ram", tuple(settings), point["ram"] + beside, best.flash, time, passes=passes)
    return [found] if settings else []


def further_of(levers: Sequence[Mapping[str, Any]], least: int) -> tuple[int, float] | None:
    """Return the ram and the extra compute of a search's step `next`, beside its `least` ram; None if it gains nothing."""
    arenas = [each["arena"] for each in levers if each["lever"] not in ("chosen", "next")]
    found = next((each for each in levers if each["lever"] == "next"), None)
    if found is None or not arenas or found["arena"] >= arenas[-1]:
        return None
    return least - arenas[-1] + found["arena"], found["extra_compute"]


def _slower(search: Mapping[str, Any], tradeoff: Mapping[str, Any], best: Footprint) -> Iterator[Remedy]:
    """Yield candidates of less ram: the best within twice the time, the least, and one with more arithmetic."""
    points, chosen = tradeoff["points"], tradeoff["points"][tradeoff["chosen"]]
    beside = best.ram - chosen["ram"]
    less = sorted((each for each in points if each["ram"] < chosen["ram"]), key=lambda each: each["cycles"])
    if tradeoff["objective"] != RAM:
        less = less and [points[0]]  # a search for another objective makes others within its own limits
    near = [each for each in less if each["cycles"] <= _NEXT * chosen["cycles"]]
    for point in {each["ram"]: each for each in (*near[-1:], *less[-1:])}.values():
        slowdown = point["cycles"] / tradeoff["whole"] if tradeoff.get("whole") else 0.0
        if settings := _admitting(slowdown, search, tradeoff):
            time = point["cycles"] / chosen["cycles"] if chosen["cycles"] else 0.0
            yield Remedy("more time", settings, point["ram"] + beside, best.flash, time)
    further = further_of(search.get("levers") or (), points[0]["ram"])
    if further is not None and further[0] < chosen["ram"]:
        yield _more_arithmetic(further, best, beside, _admitting(math.inf, search, tradeoff))


def _more_arithmetic(further: tuple[int, float], best: Footprint, beside: int, besides: tuple[Setting, ...]) -> Remedy:
    """Return the remedy of the step `next`, which takes `beside` bytes more, and other settings."""
    ram, extra = further
    limit = Setting("search", "max-extra-compute", math.ceil(100 * extra) / 100)
    return Remedy("more arithmetic", (limit, *besides), ram + beside, best.flash, extra_compute=extra)


def _admitting(slowdown: float, search: Mapping[str, Any], tradeoff: Mapping[str, Any]) -> tuple[Setting, ...]:
    """Return the settings by which a search takes the least ram up to a slowdown; none where it does already."""
    other = tradeoff["objective"] != RAM
    limit = _asked(search, "max-slowdown", SearchSettings.max_slowdown) if other else tradeoff.get("max_slowdown")
    if other and not tradeoff["within"]:
        return ()  # where nothing fits, it takes the least
    most = None if math.isinf(slowdown) else math.ceil(100 * slowdown) / 100
    raised = limit is not None and slowdown > limit
    return (*[Setting("search", "objective", RAM)] * other, *[Setting("search", "max-slowdown", most)] * raised)


def _asked(search: Mapping[str, Any], key: str, default: Any = None) -> Any:
    """Return a setting that a search was made from."""
    asked = search.get("made_from")
    return asked.get(key, default) if isinstance(asked, Mapping) else default
