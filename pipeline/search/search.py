"""Find a good sequence for a graph on a target."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence as Ordered
from contextlib import closing
from dataclasses import dataclass

from tvm.ir import IRModule

from ..errors import ConfigError, ModelError, did_you_mean
from ..memory import Footprint
from ..passes.program.order import Order
from ..passes.sequence.failures import failure_of
from ..passes.sequence.sequence import TVM_DEFAULT, Sequence
from ..targets import Target
from .evaluate.candidates import actions
from .evaluate.evaluation import OBJECTIVES, Evaluator
from .evaluate.scoring import Scorer
from .evaluate.tvm_default import tvm_default
from .evaluate.workers import InProcess, Workers
from .knowledge.knowledge import Knowledge
from .refine.accept import accepted
from .refine.lever import Lever
from .refine.levers import Attempt
from .refine.minimise import Worth
from .strategies import STRATEGIES
from .strategies.trace import Limits, Trace

#: how the candidate is called whose kernels are those of the baseline
BASELINE = "tvm-default"


@dataclass(frozen=True)
class SearchResult:
    """The best sequence found, its footprint (code 0: nothing is compiled yet), and that of the baseline.

    `closed` says that every state the actions can reach was evaluated, and that all levers were pulled on each that its
    bound does not rule out: nothing better exists among them. `ablation` is what each pass of the sequence is worth. `rejected` are the lossy sequences that were better and not accepted.
    `levers` are what lowered the arena of the winner, one after the other, `extra_compute` is what it runs again, as a
    fraction of the arithmetic there is, and `next` why no more of that was tried; see `search.refine.levers`. `tried` are the
    candidates to choose from where ram is not all that counts: what each lever led to.
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
    rejected: dict[str, str]
    levers: tuple[Lever, ...]
    extra_compute: float
    next: str
    tried: tuple[Attempt, ...]


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
    lossy: bool = False,
    knowledge: Knowledge = Knowledge(),
    refuse: Callable[[Sequence], str] = lambda sequence: "",
    progress: Callable[[str, int, int], None] | None = None,
    workers: Callable[[Scorer], Workers] = InProcess,
    baseline: Footprint | None = None,
    extra_compute: float | None = 0.25,
    rungs: Ordered[float] = (),
) -> SearchResult:
    """Search with the strategy of that name. Raises ConfigError for an unknown one, ModelError where nothing compiles.

    `objective` is what is lowered, one of OBJECTIVES. `lossy` admits passes that are not exact; `refuse` is asked about
    a lossy winner, and says why it will not do, or nothing. `knowledge` of other models says what to try first. `progress` is called with
    the phase, the number of states (or, after the search, candidates) looked at, and the least ram so far in bytes. `workers` says who works: `forked()` on all cores, with limits for each candidate; the result is
    the same. `baseline` is that of the graph, where it is known already. `extra_compute` is how much more
    arithmetic there may be for less ram, as a fraction; None leaves kernels whole. With `rungs`, what
    lies between whole kernels and splits is among what was tried (see `Splitter.rungs`), and first of all the kernels of
    the baseline.
    """
    if strategy not in STRATEGIES:
        raise ConfigError(f"There is no strategy '{strategy}'.", did_you_mean(strategy, STRATEGIES))
    if objective not in OBJECTIVES:
        raise ConfigError(f"There is no objective '{objective}'.", did_you_mean(objective, OBJECTIVES))
    if baseline is None:
        try:  # first, since workers that are forked then know what it took to find it
            baseline = tvm_default(module, target, inputs, outputs)
        except Exception as error:  # raised below, unless it is known by then what no candidate survives
            if failure_of(error) is None:
                raise
    evaluator = Evaluator(module, name, target, inputs, outputs, objective, workers)
    with closing(evaluator):
        shown = progress or (lambda what, done, best: None)
        trace = Trace(limits or Limits(), evaluator, knowledge, actions(lossy=lossy))
        evaluator.watch = lambda tried, least: shown("searching, states looked at", evaluator.count, least)
        STRATEGIES[strategy](trace, seed)
        if trace.best is None:
            reason = next(iter(evaluator.failures.values()), "no candidate was evaluated")
            raise ModelError(
                f"The model cannot be compiled: {reason}", "Replace the operator it names before exporting."
            )
        # what follows tries the winner's own variants: no part of the search
        evaluations, failures = evaluator.count, dict(evaluator.failures)
        evaluator.watch = lambda tried, least: shown("finishing, candidates looked at", tried, least)
        taken = accepted(trace, refuse, None if trace.fits else extra_compute, rungs)
        pulled = taken.pulled
        tried = (_plain(evaluator), *pulled.tried) if rungs else pulled.tried
    assert pulled.best.footprint is not None
    return SearchResult(
        strategy, pulled.best.sequence, pulled.best.footprint, baseline or tvm_default(module, target, inputs, outputs),
        evaluations, trace.closed and taken.complete, taken.ablation,
        ended(trace.trajectory, evaluations, pulled.best.footprint.ram), failures | pulled.failures, taken.rejected,
        pulled.levers, pulled.extra_compute, pulled.next, tried,
    )  # fmt: skip


def ended(trajectory: Ordered[dict[str, int]], evaluations: int, ram: int) -> tuple[dict[str, int], ...]:
    """The best of each evaluation, and one step after the last the ram of what is taken in the end: of the winner
    with all levers pulled, or of another candidate where the winner was refused or is too slow."""
    searched = [point for point in trajectory if point["evaluation"] <= evaluations]
    return (*searched, {"evaluation": evaluations + 1, "ram": ram})


def _plain(evaluator: Evaluator) -> Attempt:
    """The kernels of tvm-default, whole and in the order given; every strategy begins with them."""
    default = evaluator.evaluate(Sequence.parse(TVM_DEFAULT).passes)
    return Attempt(BASELINE, evaluator.arranged(default, (Order(by="given"),)))
