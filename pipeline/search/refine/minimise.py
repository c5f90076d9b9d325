"""Make a sequence as short as it can be at the same cost, and say what each pass that is left is worth."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from ...passes.base import Level, ModulePass
from ...passes.program.order import Order
from ..evaluate.evaluation import Evaluation, Evaluator


@dataclass(frozen=True)
class Worth:
    """What leaving a pass out would cost: bytes, and kernels. None where nothing could be compiled without it."""

    spec: str
    ram: int | None
    weights: int | None
    kernels: int | None
    sum: int | None


def minimise(
    evaluator: Evaluator, best: Evaluation, same_state: bool = False
) -> tuple[Evaluation, tuple[Worth, ...]]:
    """`best` without the passes whose removal costs nothing, last ones first; and what each one left is worth.

    With `same_state` only passes are removed that the state does not depend on.
    """
    best = _without_idle(evaluator, best)
    while (shorter := _shorter(evaluator, best, same_state)) is not None:
        best = shorter
    passes, places = best.module_passes, _optional(best)
    without = _tried(evaluator, best, [passes[:place] + passes[place + 1 :] for place in places])
    return best, tuple(_worth(passes[place].spec, best, tried) for place, tried in zip(places, without))


def _shorter(evaluator: Evaluator, best: Evaluation, same_state: bool) -> Evaluation | None:
    """`best` with a pass less, or with less of a pass, at no higher cost; None where there is no such sequence."""
    passes = best.module_passes
    less = [passes[:place] + passes[place + 1 :] for place in reversed(_optional(best))]
    less += [
        (*passes[:place], simpler, *passes[place + 1 :])
        for place, each in enumerate(passes)
        for simpler in each.simpler()
    ]
    for tried in _tried(evaluator, best, less):
        if tried is not None and (tried.key == best.key if same_state else tried.cost <= best.cost):
            return tried
    return None


def _without_idle(evaluator: Evaluator, best: Evaluation) -> Evaluation:
    """`best` without the passes that leave the module as it was: nothing needs to be evaluated for that.

    `legalize` stays where the import made kernels already: a sequence needs it.
    """
    passes = best.module_passes
    keys = list(evaluator.keys(passes[:end] for end in range(len(passes) + 1)))
    kept = tuple(each for place, each in enumerate(passes) if keys[place] != keys[place + 1] or _leaves_graph(each))
    return replace(best, passes=(*kept, *best.passes[len(passes) :]))


def _optional(evaluation: Evaluation) -> list[int]:
    """The places of its module passes, but for `legalize`, without which there are no kernels."""
    return [place for place, each in enumerate(evaluation.module_passes) if not _leaves_graph(each)]


def _leaves_graph(each: ModulePass) -> bool:
    return each.level_after(Level.GRAPH) != Level.GRAPH


def _tried(
    evaluator: Evaluator, best: Evaluation, sequences: Iterable[tuple[ModulePass, ...]]
) -> Iterator[Evaluation | None]:
    """Other module passes, each in the better of the order of `best` and the named ones; None where they fail."""
    order = best.passes[-1]
    for tried in evaluator.evaluate_all(sequences):
        if tried.footprint is None:
            yield None
        elif isinstance(order, Order) and order.by in ("beam", "best"):
            yield min(tried, evaluator.with_order(tried, order), key=lambda each: each.cost)
        else:
            yield tried


def _worth(spec: str, best: Evaluation, without: Evaluation | None) -> Worth:
    """`best` beside what it is without a pass."""
    if without is None or without.footprint is None or best.footprint is None:
        return Worth(spec, None, None, None, None)
    less, full = without.footprint, best.footprint
    return Worth(
        spec, less.ram - full.ram, less.weights - full.weights, less.kernels - full.kernels, less.sum - full.sum
    )  # fmt: skip
