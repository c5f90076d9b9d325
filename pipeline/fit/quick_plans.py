"""Find a few good sequences in seconds: a search by architecture with little effort."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..frontend.imported_model import ImportedModel, port_names
from ..memory.footprint import Footprint
from ..search.settings import RAM, Aim, SearchSettings
from ..support.progress import Progress
from ..targets import Target

#: processor seconds of the search that find most of what splits gain
SECONDS = 1.0
_STRATEGY = "by-architecture"
#: refinement steps that leave kernels whole, and the one beyond the limit of extra compute: see `search.refine.levers`
_WHOLE, _NEXT = ("given", "order", "share"), "next"
#: no memory limits a quick search: its plans serve all targets
_UNLIMITED = 1 << 62
#: footprint of tvm-default, which is not asked for
_NONE = Footprint(0, 0, 0, 0, 0, 0, 0, 0, proved=False, kernels=0, sum=0)


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
    """Plans of a model: `chosen` as `passfit compile` chooses, and the `least` ram at any price.

    `further` is the least with twice the extra compute, None where it was not tried. `whole` is the least ram of whole
    kernels, in bytes.
    """

    chosen: QuickPlan
    least: QuickPlan
    further: QuickPlan | None
    whole: int


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
        baseline=_NONE, extra_compute=settings.max_extra_compute,
        aim=Aim(RAM, _UNLIMITED, _UNLIMITED, settings.max_slowdown),
    )  # fmt: skip
    assert found.tradeoff is not None
    points, fastest = found.tradeoff.points, found.tradeoff.whole
    plans = [
        QuickPlan(
            each.passes,
            each.ram,
            each.weights,
            each.most_flash - each.weights,
            each.cycles / fastest if fastest else 0.0,
            each.extra_compute,
        )
        for each in points
    ]
    least = plans[0]
    arenas = {each.lever: each.arena for each in found.levers}
    besides = least.ram - [each.arena for each in found.levers if each.lever not in (CHOSEN, _NEXT)][-1]
    whole = besides + min(arenas[lever] for lever in _WHOLE if lever in arenas)
    further = next((each for each in found.levers if each.lever == _NEXT and besides + each.arena < least.ram), None)
    beyond = None
    if further is not None:
        beyond = replace(
            least, passes=further.passes, ram=besides + further.arena, slowdown=0.0, extra_compute=further.extra_compute
        )
    return QuickPlans(plans[found.tradeoff.chosen], least, beyond, whole)
