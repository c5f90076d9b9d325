"""Minimise a sequence at equal cost, then ablate: measure the worth of each pass left."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from ...passes.base import Level, ModulePass
from ...passes.program.order import Order
from ..effort import FINALISTS
from ..evaluate.evaluation import Evaluation, Evaluator


@dataclass(frozen=True)
class Worth:
    """Cost of leaving a pass out, in bytes and kernels.

    None if nothing compiles without it.
    """

    spec: str
    ram: int | None
    weights: int | None
    kernels: int | None
    sum: int | None


def minimise(evaluator: Evaluator, best: Evaluation, same_state: bool = False) -> tuple[Evaluation, tuple[Worth, ...]]:
    """Remove passes of `best` that cost nothing, last ones first; return it with the worth of the others, if time allows.

    With `same_state`, only passes are removed that do not change the state.
    """
    best = remove_idle(evaluator, best)
    while not evaluator.effort.over(FINALISTS) and (shorter := _shorter(evaluator, best, same_state)) is not None:
        best = shorter
    if evaluator.effort.over(FINALISTS):
        return best, ()
    passes, places = best.module_passes, _optional(best)
    without = _try(evaluator, best, [passes[:place] + passes[place + 1 :] for place in places])
    return best, tuple(_worth(passes[place].spec, best, tried) for place, tried in zip(places, without))


def _shorter(evaluator: Evaluator, best: Evaluation, same_state: bool) -> Evaluation | None:
    """Find a sequence with one pass less, or a simpler pass, at no higher cost; None if there is none."""
    passes = best.module_passes
    less = [passes[:place] + passes[place + 1 :] for place in reversed(_optional(best))]
    less += [
        (*passes[:place], simpler, *passes[place + 1 :])
        for place, each in enumerate(passes)
        for simpler in each.simpler()
    ]
    for tried in _try(evaluator, best, less):
        if tried is not None and (tried.key == best.key if same_state else tried.cost <= best.cost):
            return tried
    return None


def remove_idle(evaluator: Evaluator, best: Evaluation) -> Evaluation:
    """Remove passes that do not change the module, by state keys only.

    `legalize` stays even if the import made kernels already: a sequence needs it.
    """
    passes = best.module_passes
    keys = list(evaluator.keys(passes[:end] for end in range(len(passes) + 1)))
    kept = tuple(each for place, each in enumerate(passes) if keys[place] != keys[place + 1] or _leaves_graph(each))
    return replace(best, passes=(*kept, *best.passes[len(passes) :]))


def _optional(evaluation: Evaluation) -> list[int]:
    """List the positions of module passes except `legalize`, which makes the kernels."""
    return [place for place, each in enumerate(evaluation.module_passes) if not _leaves_graph(each)]


def _leaves_graph(each: ModulePass) -> bool:
    return each.level_after(Level.GRAPH) != Level.GRAPH


def _try(
    evaluator: Evaluator, best: Evaluation, sequences: Iterable[tuple[ModulePass, ...]]
) -> Iterator[Evaluation | None]:
    """Evaluate other module passes, None if they fail.

    Each is in the order of `best` or in the best of the cheap ones, whichever is better.
    """
    order = best.passes[-1]
    for tried in evaluator.evaluate_all(sequences):
        if tried.footprint is None:
            yield None
        elif isinstance(order, Order) and order.by in ("beam", "best"):
            yield min(tried, evaluator.with_order(tried, order), key=lambda each: each.cost)
        else:
            yield tried


def _worth(spec: str, best: Evaluation, without: Evaluation | None) -> Worth:
    """Compare `best` with the evaluation without the pass `spec`."""
    if without is None or without.footprint is None or best.footprint is None:
        return Worth(spec, None, None, None, None)
    less, full = without.footprint, best.footprint
    return Worth(
        spec, less.ram - full.ram, less.weights - full.weights, less.kernels - full.kernels, less.sum - full.sum
    )  # fmt: skip
