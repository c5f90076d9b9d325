"""Search a pass sequence of low ram for a graph on a target."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence as Ordered
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial

from tvm.ir import IRModule

from ..errors import ConfigError, did_you_mean
from ..memory import Baseline, Footprint
from ..passes.program.order import Order
from ..passes.sequence.sequence import TVM_DEFAULT, Sequence
from ..targets import Target
from .choose_by_aim import choose_by_aim
from .evaluate.candidates import actions
from .evaluate.evaluation import OBJECTIVES, Evaluator, uncompilable
from .evaluate.scoring import Scorer
from .evaluate.tvm_default import tvm_default
from .evaluate.workers import InProcess, Workers
from .knowledge.knowledge import Knowledge
from .refine.accept import refine_winner
from .refine.lever import Lever
from .refine.levers import Attempt, lever_of
from .refine.minimise import Worth
from .refine.splitting import Splitter
from .settings import RAM, Aim
from .strategies import STRATEGIES
from .strategies.trace import Limits, Trace
from .tradeoff import Tradeoff

#: name of the candidate with the kernels of the baseline
BASELINE = "tvm-default"
#: name of the refinement step that takes another candidate than that of least ram
CHOSEN = "chosen"


@dataclass(frozen=True)
class SearchResult:
    """Best sequence found, its footprint, and the baseline's.

    Its code is 0: nothing is compiled yet. `closed`: every reachable state was evaluated, and every state not
    ruled out by its bound was refined, so none of them leads lower. `ablation` is the worth of each pass of the
    sequence. `rejected` are better lossy sequences that were refused, with the reason. `levers` are the refinement
    steps of the winner, in order; `extra_compute` is its recomputation as a fraction of the original arithmetic, and
    `next` the reason why no more was tried; see `search.refine.levers`. `tried` are the results of all refinement
    steps, to choose from under a latency limit. `family` is the architecture's, if the strategy chose by it. With an
    aim besides the least ram, `tradeoff` holds the candidates it was chosen from; the rest tells of the least ram.
    `ended_by` is `work` or `clock` if the effort was used up, see `Effort`.
    """

    strategy: str
    sequence: Sequence
    best: Footprint
    baseline: Baseline
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
    family: str = ""
    tradeoff: Tradeoff | None = None
    ended_by: str = ""


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
    progress: Callable[[str, int, int, float], None] | None = None,
    workers: Callable[[Scorer], Workers] = InProcess,
    baseline: Baseline | None = None,
    extra_compute: float | None = 0.25,
    rungs: Ordered[float] = (),
    aim: Aim | None = None,
    incumbent: Callable[[Sequence], None] = lambda sequence: None,
) -> SearchResult:
    """Search by the strategy of that name. Raises ConfigError for an unknown name, ModelError if nothing compiles.

    `objective` is minimised, one of OBJECTIVES. `lossy` admits inexact passes; `refuse` returns the reason to refuse a
    lossy winner, or an empty string. `knowledge` of other models orders the candidates. `progress` is called with the
    phase, the number of states (after the search: candidates) evaluated, the least ram so far in bytes, and its time relative
    to the fastest whole kernels, 0 until it is known. `workers`
    evaluate candidates: `forked()` uses all cores, with limits for each candidate; the result is the same. `baseline`
    is the footprint of `tvm-default`, if known already. `extra_compute` limits recomputation as a fraction of the
    original arithmetic; None leaves kernels whole. With `rungs`, `tried` also holds candidates between streamed and
    whole kernels (see `Splitter.rungs`), and first of all the kernels of the baseline. `aim` chooses another candidate
    than that of least ram, see `choose_by_aim`. `incumbent` is called now and then with the best sequence so far, of whole
    kernels.
    """
    for what, name_given, known in (("strategy", strategy, STRATEGIES), ("objective", objective, OBJECTIVES)):
        if name_given not in known:
            raise ConfigError(f"There is no {what} '{name_given}'.", did_you_mean(name_given, known))
    # first, since workers that are forked then know what it took to find it
    baseline = baseline or tvm_default(module, target, inputs, outputs)
    evaluator = Evaluator(module, name, target, inputs, outputs, objective, workers)
    limits = limits or Limits()
    evaluator.effort.seconds = limits.seconds
    with closing(evaluator):
        shown = progress or (lambda what, done, best, slowdown: None)
        trace = Trace(limits, evaluator, knowledge, actions(lossy=lossy))

        def watch(what: str, number: Callable[[int], int]) -> Callable[[int, int], None]:
            def show(tried: int, least: int) -> None:
                shown(what, number(tried), least, 0.0)
                if trace.best is not None:
                    incumbent(trace.best.sequence)

            return show

        evaluator.watch = watch("searching, states evaluated", lambda tried: evaluator.count)
        STRATEGIES[strategy](trace, seed)
        if trace.best is None:
            reason = next(iter(evaluator.failures.values()), "no candidate was evaluated")
            raise uncompilable(reason)
        # refinement tries variants of the winner: it is not counted as search
        evaluations, failures = evaluator.count, dict(evaluator.failures)
        evaluator.watch = watch("refining, candidates evaluated", lambda tried: tried)
        splitter, extra = Splitter(evaluator), None if trace.fits else extra_compute
        enough = 0 if aim is None or aim.objective == RAM else aim.ram
        taken = refine_winner(trace, splitter, refuse, extra, rungs, enough)
        refinement = taken.refinement
        tried = (_plain(evaluator), *refinement.tried) if rungs else refinement.tried
        chosen, tradeoff = None, None
        if aim is not None:
            estimating = partial(shown, "estimating code", 0)
            chosen, tradeoff = choose_by_aim(aim, trace, splitter, refinement, extra, estimating)
    found = SearchResult(
        strategy, refinement.best.sequence, refinement.best.result, baseline,
        evaluations, trace.closed and taken.complete and refinement.ram > enough and not evaluator.effort.ended_by, taken.ablation,
        end_trajectory(trace.trajectory, evaluations, refinement.best.result.ram), failures | refinement.failures, taken.rejected,
        refinement.levers, refinement.extra_compute, refinement.next, tried, trace.family, tradeoff,
        evaluator.effort.ended_by,
    )  # fmt: skip
    if chosen is None or chosen.evaluation is refinement.best:
        return found
    return replace(replace_winner(found, chosen), closed=False)


def replace_winner(result: SearchResult, chosen: Attempt) -> SearchResult:
    """Replace the sequence of least ram by another candidate's, as a last refinement step."""
    own = chosen.evaluation.sequence.specs == result.sequence.specs
    last = () if own else (lever_of(CHOSEN, chosen.evaluation, chosen.extra_compute),)
    return replace(
        result,
        levers=(*result.levers, *last),
        sequence=chosen.evaluation.sequence,
        best=chosen.evaluation.result,
        extra_compute=chosen.extra_compute,
        trajectory=end_trajectory(result.trajectory, result.evaluations, chosen.evaluation.result.ram),
    )


def end_trajectory(trajectory: Ordered[dict[str, int]], evaluations: int, ram: int) -> tuple[dict[str, int], ...]:
    """Append the ram of the final sequence to a trajectory, after the last evaluation.

    That is the refined winner, or another candidate if the winner was refused or is too slow.
    """
    searched = [point for point in trajectory if point["evaluation"] <= evaluations]
    return (*searched, {"evaluation": evaluations + 1, "ram": ram})


def _plain(evaluator: Evaluator) -> Attempt:
    """Evaluate the whole kernels of tvm-default in the order given; every strategy starts from them."""
    default = evaluator.evaluate(Sequence.parse(TVM_DEFAULT).passes)
    return Attempt(BASELINE, evaluator.arranged(default, (Order(by="given"),)))
