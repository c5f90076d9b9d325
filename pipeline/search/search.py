"""Find a good sequence for a graph on a target."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence as Ordered
from dataclasses import dataclass

from tvm.ir import IRModule

from ..errors import ConfigError, ModelError, did_you_mean
from ..memory import Footprint
from ..passes.order import Order
from ..passes.sequence import Sequence
from ..targets import Target
from .baseline import tvm_default
from .evaluation import Evaluation, Evaluator
from .strategies import STRATEGIES
from .strategy import Limits, Trace


@dataclass(frozen=True)
class SearchResult:
    """The best sequence found, its footprint (code 0: nothing is compiled yet), and that of the baseline."""

    sequence: Sequence
    best: Footprint
    baseline: Footprint
    evaluations: int
    trajectory: tuple[dict[str, int], ...]
    failures: dict[str, str]


def search(
    module: IRModule,
    name: str,
    target: Target,
    inputs: Ordered[str],
    outputs: Ordered[str],
    *,
    strategy: str = "greedy",
    limits: Limits | None = None,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> SearchResult:
    """Search with the strategy of that name. Raises ConfigError for an unknown one, ModelError where nothing compiles.

    `progress` is called with the number of evaluations and the best ram so far.
    """
    if strategy not in STRATEGIES:
        raise ConfigError(f"There is no strategy '{strategy}'.", did_you_mean(strategy, STRATEGIES))
    evaluator = Evaluator(module, name, target, inputs, outputs)
    trace = Trace(limits or Limits(), evaluator, progress or (lambda done, best: None))
    STRATEGIES[strategy](trace, seed)
    if trace.best is None:
        reason = next(iter(evaluator.failures.values()), "no candidate was evaluated")
        raise ModelError(f"The model cannot be compiled: {reason}", "Replace the operator it names before exporting.")
    best = _finest_order(trace, trace.best)
    assert best.footprint is not None
    return SearchResult(
        best.sequence, best.footprint, tvm_default(module, target, inputs, outputs),
        evaluator.count, tuple(trace.trajectory), evaluator.failures,
    )  # fmt: skip


def _finest_order(trace: Trace, best: Evaluation) -> Evaluation:
    """The winner in the best order a beam search finds, where that is better."""
    assert best.footprint is not None
    if best.footprint.arena > best.footprint.floor:
        trace.consider(trace.evaluator.with_order(best, Order(by="beam")))
    assert trace.best is not None
    return trace.best
