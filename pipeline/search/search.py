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
from .evaluation import OBJECTIVES, Evaluation, Evaluator
from .minimise import Worth, minimise
from .strategies import STRATEGIES
from .strategy import Limits, Trace


@dataclass(frozen=True)
class SearchResult:
    """The best sequence found, its footprint (code 0: nothing is compiled yet), and that of the baseline.

    `closed` says that every state the actions can reach was evaluated: nothing better exists among them. `ablation`
    is what each pass of the sequence is worth.
    """

    strategy: str
    sequence: Sequence
    best: Footprint
    baseline: Footprint
    evaluations: int
    closed: bool
    ablation: tuple[Worth, ...]
    trajectory: tuple[dict[str, int], ...]
    failures: dict[str, str]


def search(
    module: IRModule,
    name: str,
    target: Target,
    inputs: Ordered[str],
    outputs: Ordered[str],
    *,
    strategy: str = "orchestrated",
    objective: str = "ram",
    limits: Limits | None = None,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> SearchResult:
    """Search with the strategy of that name. Raises ConfigError for an unknown one, ModelError where nothing compiles.

    `objective` is what is lowered, one of OBJECTIVES. `progress` is called with the number of evaluations and the best
    ram so far.
    """
    if strategy not in STRATEGIES:
        raise ConfigError(f"There is no strategy '{strategy}'.", did_you_mean(strategy, STRATEGIES))
    if objective not in OBJECTIVES:
        raise ConfigError(f"There is no objective '{objective}'.", did_you_mean(objective, OBJECTIVES))
    evaluator = Evaluator(module, name, target, inputs, outputs, objective)
    trace = Trace(limits or Limits(), evaluator, progress or (lambda done, best: None))
    STRATEGIES[strategy](trace, seed)
    if trace.best is None:
        reason = next(iter(evaluator.failures.values()), "no candidate was evaluated")
        raise ModelError(f"The model cannot be compiled: {reason}", "Replace the operator it names before exporting.")
    evaluations = evaluator.count
    best, ablation = minimise(evaluator, _finest_order(trace, trace.best))
    assert best.footprint is not None
    return SearchResult(
        strategy, best.sequence, best.footprint, tvm_default(module, target, inputs, outputs), evaluations,
        trace.closed, ablation, tuple(trace.trajectory), evaluator.failures,
    )  # fmt: skip


def _finest_order(trace: Trace, best: Evaluation) -> Evaluation:
    """The winner in the best order a beam search finds, where that is better."""
    assert best.footprint is not None
    if best.footprint.arena > best.footprint.floor:
        trace.consider(trace.evaluator.with_order(best, Order(by="beam")))
    assert trace.best is not None
    return trace.best
