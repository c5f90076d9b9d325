"""List alternatives to the least ram: faster or smaller candidates within a limit of ram, or of cycles.

    other states, kernels whole ──► the fastest that fit
                              └──► the fastest that do not: split only as far as the limit asks for
    the winner's own levers and rungs, and its splits as far as the limit asks for

With a limit of cycles that the winner exceeds, the quick states of least split peaks are split, and the winner's own:
first finely, then coarser and coarser, and then between the coarsest that is too slow and the finest that is not.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Sequence as Ordered

from ...passes.graph.distribute_loops import DistributeLoops
from ...passes.program.order import Order
from ..effort import WINNER
from ..evaluate.costs import Costs, costs_task
from ..evaluate.evaluation import Evaluation, Evaluator
from ..settings import Aim
from ..strategies.trace import Trace
from ..tradeoff import CostPoint, most_cycles
from .growing import ALL_PARTS, growing_plans
from .levers import Attempt, Refinement
from .split_plan import SplitPlan, lowest
from .splitting import Splitter

#: states whose cycles are counted, those of fewest bytes made and read; and of these, the fastest to split besides the winner
STATES, SPLIT = 8, 2
#: bytes allowed before memory is shared, relative to the limit: sharing makes room for more
SLACK = (1.0, 1.15, 1.35)
#: bytes allowed for splits under a limit of cycles, as fractions of those between the finest plan and whole kernels; and
#: the plans tried between two of these
FRACTIONS, BETWEEN = (0.03, 0.1, 0.25, 0.5), 2
#: passes from graph to graph that trade memory for time, tried on the winner's graph: a tenth of the reads of weights in a
#: loop, at most, and one read
FASTER = (DistributeLoops(trips=10), DistributeLoops())
#: name of the candidates with another state's kernels
OTHER = "state"


def alternatives(
    aim: Aim, trace: Trace, splitter: Splitter, refinement: Refinement, extra_compute: float | None
) -> list[tuple[Attempt, Costs]]:
    """Return candidates with their costs, the one of least ram first; others may exceed the limits of `aim`.

    `extra_compute` as in `levers.refine`: None leaves kernels whole.
    """
    evaluator, ram = trace.evaluator, aim.ram
    least = Attempt(_lever_of(refinement), refinement.best, refinement.extra_compute)
    own = evaluator.evaluate(refinement.best.module_passes)
    others = {each.key: each for each in (*_faster(evaluator, own), *_states(trace)) if each.key != own.key}
    states = [Attempt(OTHER, _reorder(evaluator, each, ram)) for each in others.values()]
    found = _count(evaluator, [least, *refinement.tried, *states])
    if not found or found[0][0] is not least:
        return [(least, Costs(0))]  # it cannot be scheduled: no other is known to be better
    if extra_compute is None:
        return found
    if aim.max_slowdown is not None:
        limit = most_cycles(aim, (cost_point(*each) for each in found))
        return found + _within_time(evaluator, splitter, own, found, limit, extra_compute)
    plans = [(own, plan) for plan in _plans(splitter, own, ram, extra_compute)]
    for state in _worth_splitting(found, ram)[:SPLIT]:
        plans += [(state, plan) for plan in _plans(splitter, state, ram, None)]
    split = [
        Attempt("rung", each, plan.extra_compute) for state, plan in plans for each in _evaluate(splitter, state, plan)
    ]
    return found + _count(evaluator, split, known=[attempt for attempt, _ in found])


def cost_point(attempt: Attempt, costs: Costs) -> CostPoint:
    """Return the point of a candidate for `tradeoff.choose`."""
    footprint, sequence = attempt.evaluation.result, attempt.evaluation.sequence
    most = footprint.weights + costs.most_code
    return CostPoint(
        attempt.lever,
        sequence.specs,
        footprint.ram,
        footprint.weights,
        costs.cycles,
        attempt.extra_compute,
        most,
        sequence.whole,
    )


def _within_time(
    evaluator: Evaluator,
    splitter: Splitter,
    own: Evaluation,
    found: Ordered[tuple[Attempt, Costs]],
    limit: float,
    extra_compute: float,
) -> list[tuple[Attempt, Costs]]:
    """Return splits as fine as `limit` cycles allow, of the winner's state and quick ones; none if the winner is quick.

    Those of the winner repeat steps as it does, within `extra_compute`.
    """
    if found[0][1].cycles <= limit:
        return []
    quick = [each.evaluation for each, costs in found if each.lever == OTHER and costs.cycles <= limit]
    planned = zip(quick, map(lowest, splitter.plans_of(quick)))
    most = 1 if evaluator.effort.over(1.0) else SPLIT
    least = sorted(planned, key=lambda each: (_peak(*each), each[0].score))[:most]
    added = _count(evaluator, [Attempt(OTHER, evaluator.finest_order([state])) for state, _ in least])
    known = splitter.plans(own)
    repeating = splitter.lowest(own, known, extra_compute)
    for plan in (repeating, lowest(known)) if repeating.repeats else (repeating,):
        lower = growing_plans(splitter, plan, ALL_PARTS)
        added += (tried := _finest_within(evaluator, splitter, own, plan, limit, lower))
        if any(costs.cycles <= limit for _, costs in tried):
            break  # else repeats may take too long by themselves
    for state, plan in least:
        added += _finest_within(evaluator, splitter, state, plan, limit)
    return added


def _peak(state: Evaluation, plan: SplitPlan) -> int:
    """Estimate the ram of a state by a split plan."""
    whole = state.result
    return plan.bound + whole.ram - whole.arena


def _finest_within(
    evaluator: Evaluator,
    splitter: Splitter,
    state: Evaluation,
    finest: SplitPlan,
    limit: float,
    lower: Iterable[SplitPlan] = (),
) -> list[tuple[Attempt, Costs]]:
    """Split a state by plans of more and more bytes; then between those above `limit` cycles and the first within.

    `lower` are plans of fewer bytes than `finest`.
    """
    found: list[tuple[Attempt, Costs]] = []
    above, within = 0, finest.whole
    plans = [*lower, finest, *splitter.rungs(finest, FRACTIONS)]
    for _ in range(1 + BETWEEN):
        tried = [
            (plan.nbytes, Attempt("rung", each, plan.extra_compute))
            for plan in plans
            for each in _evaluate(splitter, state, plan)
        ]
        counted = _count(evaluator, [attempt for _, attempt in tried])
        nbytes = {attempt.evaluation.passes: size for size, attempt in tried}
        sizes = [(nbytes[attempt.evaluation.passes], costs.cycles <= limit) for attempt, costs in counted]
        within = min((size for size, is_quick in sizes if is_quick), default=within)
        above = max((size for size, is_quick in sizes if not is_quick and size < within), default=above)
        found += counted
        if not finest.nbytes <= above < within:
            break
        plans = splitter.within(finest, [(above + within) // 2])
    return found


def _states(trace: Trace) -> list[Evaluation]:
    """Return the exact states of fewest bytes in all tensors, as many as the effort allows: errors of others are unknown."""
    states = [each for group in trace.finalists() for each in group if not each.loss]
    most = SPLIT if trace.evaluator.effort.over(WINNER) else STATES
    return sorted(states, key=lambda each: (each.result.sum, each.score))[:most]


def _faster(evaluator: Evaluator, own: Evaluation) -> list[Evaluation]:
    """Evaluate the winner's graph with each pass of FASTER before all others."""
    tried = evaluator.evaluate_all((each, *own.module_passes) for each in FASTER if each not in own.module_passes)
    return [each for each in tried if each.footprint is not None]


def _worth_splitting(found: Ordered[tuple[Attempt, Costs]], ram: int) -> list[Evaluation]:
    """Return states too large for the limit, but faster than all that fit, the fastest first."""
    fitting = [costs.cycles for attempt, costs in found if attempt.evaluation.result.ram <= ram]
    faster = [
        (costs.cycles, attempt.evaluation)
        for attempt, costs in found
        if attempt.lever == OTHER and costs.cycles < min(fitting, default=costs.cycles + 1)
    ]
    return [state for _, state in sorted(faster, key=lambda each: (each[0], each[1].score))]


def _reorder(evaluator: Evaluator, state: Evaluation, ram: int) -> Evaluation:
    """Return a state in a better order if it exceeds the limit, and its floor does not."""
    found = state.result
    if found.ram <= ram or found.ram - found.arena + found.floor > ram:
        return state
    return evaluator.with_order(state, Order(by="best"))


def _plans(splitter: Splitter, state: Evaluation, ram: int, extra_compute: float | None) -> list[SplitPlan]:
    """Return plans as coarse as the limit allows, and with repeats too if `extra_compute` is given."""
    whole = state.result
    allowed = ram - (whole.ram - whole.arena)
    sizes = [int(slack * allowed) for slack in SLACK]
    known = splitter.plans(state)
    plans = splitter.within(lowest(known), sizes)
    if extra_compute:
        repeating = splitter.lowest(state, known, extra_compute)
        plans += splitter.within(repeating, sizes) if repeating.repeats else []
    return plans


def _evaluate(splitter: Splitter, state: Evaluation, plan: SplitPlan) -> list[Evaluation]:
    tried = [each for each in splitter.evaluations(state, plan) if each.footprint is not None]
    return sorted(tried, key=lambda each: each.score)[:1]


def _count(
    evaluator: Evaluator, attempts: Ordered[Attempt], known: Ordered[Attempt] = ()
) -> list[tuple[Attempt, Costs]]:
    """Compute the costs of attempts of distinct passes; leave out those that cannot be scheduled."""
    seen = {each.evaluation.passes for each in known}
    different: list[Attempt] = []
    for each in attempts:
        if each.evaluation.footprint is not None and each.evaluation.passes not in seen:
            seen.add(each.evaluation.passes)
            different.append(each)
    costs = evaluator.attempt(costs_task(each.evaluation, evaluator.target) for each in different)
    return [(each, found) for each, found in zip(different, costs) if found is not None]


def _lever_of(refinement: Refinement) -> str:
    """Name the refinement step that led to the least ram."""
    return next((each.lever for each in refinement.tried if each.evaluation is refinement.best), "share")
