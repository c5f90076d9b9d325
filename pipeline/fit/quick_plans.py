"""Find a few good sequences in seconds: a search by architecture with little effort."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from ..frontend.imported_model import ImportedModel, port_names
from ..memory.footprint import Baseline
from ..search.refine.lever import Lever
from ..search.settings import RAM, Aim, SearchSettings
from ..search.tradeoff import CostPoint, Tradeoff, choose
from ..support.progress import Progress
from ..targets import Target

#: processor seconds of the search that find most of what splits gain
SECONDS = 1.0
_STRATEGY = "by-architecture"
#: refinement steps that leave kernels whole, and the one beyond the limit of extra compute: see `search.refine.levers`
_WHOLE, _NEXT = ("given", "order", "share"), "next"
#: code, relative to its bound (`tir/counts/most_code.py`): 0.085 to 0.107 for kws-int8, mtcnn-onet, wake-embedding, ocr-rec
#: on a Cortex-M4
OF_BOUND = 0.095
#: no memory limits a quick search: its plans serve all targets
_UNLIMITED = 1 << 62


@dataclass(frozen=True)
class QuickPlan:
    """Plan with its ram (without stack), weights and a bound of code, in bytes.

    `passes` are its specs. `slowdown` is its predicted time, relative to the fastest whole kernels, 0 where it is not known;
    `extra_compute` its additional arithmetic, as a fraction.
    """

    passes: tuple[str, ...]
    ram: int
    weights: int
    most_code: int
    slowdown: float
    extra_compute: float


@dataclass(frozen=True)
class QuickPlans:
    """Candidates of a search within no limits, the one of least ram first; `levers` are the steps that led to it.

    `whole` is the least ram of whole kernels, in bytes, `fastest` the cycles of the fastest; `max_slowdown` is that of the search.
    """

    points: tuple[CostPoint, ...]
    levers: tuple[Lever, ...]
    whole: int
    fastest: int | None
    max_slowdown: float | None

    def search(self, aim: Aim | None) -> dict[str, Any]:
        """Return the content of search.json for `aim`; None is the least ram at any price."""
        _, tradeoff = self._choose(aim)
        asked = {"max-slowdown": self.max_slowdown}
        return {"tradeoff": asdict(tradeoff), "levers": [asdict(each) for each in self.levers], "made_from": asked}

    def plan(self, aim: Aim | None) -> QuickPlan:
        """Return the plan that a search for `aim` would choose."""
        point, fastest = self.points[self._choose(aim)[0]], self.fastest
        return QuickPlan(
            point.passes, point.ram, point.weights, point.most_flash - point.weights,
            point.cycles / fastest if fastest else 0.0, point.extra_compute,
        )  # fmt: skip

    def _choose(self, aim: Aim | None) -> tuple[int, Tradeoff]:
        return choose(aim or self._unlimited(None), self.points, self._flash, self.fastest)

    @property
    def chosen(self) -> QuickPlan:
        """Return the plan of least ram within reason, whatever the limits."""
        return self.plan(self._unlimited(self.max_slowdown))

    def _unlimited(self, max_slowdown: float | None) -> Aim:
        return Aim(RAM, _UNLIMITED, _UNLIMITED, max_slowdown)

    def _flash(self, number: int) -> int:
        point = self.points[number]
        return point.weights + round(OF_BOUND * (point.most_flash - point.weights))


def quick_plans(imported: ImportedModel, target: Target, settings: SearchSettings, progress: Progress) -> QuickPlans:
    """Search plans for a target by the limits of `settings`. Raises ModelError if nothing compiles."""
    from ..search.find_sequence import workers_of
    from ..search.knowledge import load_knowledge
    from ..search.search import CHOSEN, search
    from ..search.strategies.trace import Limits

    found = search(
        imported.graph, imported.name, target, *port_names(imported.onnx),
        strategy=_STRATEGY, limits=Limits(settings.evaluations, settings.seconds or SECONDS), knowledge=load_knowledge(None),
        progress=lambda what, done, *_: progress(what, done, 0), workers=workers_of(imported, target, settings),
        baseline=Baseline.missing("not asked for"), extra_compute=settings.max_extra_compute,
        aim=Aim(RAM, _UNLIMITED, _UNLIMITED, settings.max_slowdown),
    )  # fmt: skip
    assert found.tradeoff is not None
    points = tuple(replace(each, flash=None) for each in found.tradeoff.points)
    arenas = {each.lever: each.arena for each in found.levers}
    besides = points[0].ram - [each.arena for each in found.levers if each.lever not in (CHOSEN, _NEXT)][-1]
    whole = besides + min(arenas[lever] for lever in _WHOLE if lever in arenas)
    return QuickPlans(points, found.levers, whole, found.tradeoff.whole, settings.max_slowdown)
