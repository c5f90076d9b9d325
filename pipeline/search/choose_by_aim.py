"""Choose the result of a search by an aim besides the least ram. Nothing runs: the same inputs give the same choice."""

from __future__ import annotations

import math
from collections.abc import Callable

from .evaluate.code_estimate import CodeEstimate
from .evaluate.costs import flash_of
from .refine.alternatives import alternatives, cost_point
from .refine.levers import Attempt, Refinement
from .refine.splitting import Splitter
from .settings import Aim
from .strategies.trace import Trace
from .tradeoff import Tradeoff, choose, fastest_whole


def choose_by_aim(
    aim: Aim,
    trace: Trace,
    splitter: Splitter,
    refinement: Refinement,
    extra_compute: float | None,
    progress: Callable[[int, float], None],
) -> tuple[Attempt, Tradeoff]:
    """Return the chosen candidate and the front; see `tradeoff.choose`.

    `progress` is called before each estimate of code, which takes longest, with the least ram in bytes, and its time
    relative to the fastest whole kernels.
    """
    evaluator = trace.evaluator
    found = alternatives(aim, trace, splitter, refinement, extra_compute)
    points = [cost_point(attempt, costs) for attempt, costs in found]
    code = CodeEstimate(evaluator.target)
    least = points[0].ram, points[0].cycles / (fastest_whole(points) or math.inf)

    def flash(number: int) -> int:
        progress(*least)
        return flash_of(found[number][0].evaluation, evaluator.scorer, code)

    chosen, tradeoff = choose(aim, points, flash)
    return found[chosen][0], tradeoff
