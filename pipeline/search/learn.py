"""Learn from one model: explore its states, and search its best refined sequence."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import replace

from ..frontend.imported_model import ImportedModel, port_names
from ..passes.base import Level
from ..passes.graph.fuse_operators import FuseOperators
from ..passes.sequence.sequence import Sequence, specs_of
from ..support.progress import Progress
from ..targets import Target
from .evaluate.candidates import CLEAN_UP, TAILS, Candidate
from .evaluate.evaluation import Evaluator
from .evaluate.scoring import Scorer
from .evaluate.workers import Workers
from .find_sequence import workers_of
from .knowledge.explore import explore
from .knowledge.record import KnownSequence, ModelRecord
from .knowledge.store import merge
from .search import search
from .settings import SearchSettings
from .strategies.trace import Limits

#: seconds of the search: a safety net for slow machines
SECONDS = 600.0


def learn_models(
    models: Iterable[ImportedModel],
    target: Target,
    known: tuple[ModelRecord, ...],
    evaluations: int,
    progress: Progress,
) -> tuple[ModelRecord, ...]:
    """Add the records of `models` to the known ones, in place of earlier ones; see `learn_model`."""
    for each in models:
        workers = workers_of(each, target, SearchSettings())
        record = learn_model(each, target, workers, evaluations, lambda done: progress("learning", done, evaluations))
        known = merge(known, (record,))
    return known


def learn_model(
    imported: ImportedModel,
    target: Target,
    workers: Callable[[Scorer], Workers],
    evaluations: int,
    progress: Callable[[int], None] = lambda done: None,
) -> ModelRecord:
    """Return the record of a model. Raises ModelError if tvm-default fails.

    `evaluations` limits the states explored; the search that follows has its own limits.
    """
    ports = port_names(imported.onnx)
    with closing(Evaluator(imported.graph, imported.name, target, *ports, workers=workers)) as evaluator:
        record = explore(evaluator, imported.name, evaluations, progress)
        found = search(
            imported.graph, imported.name, target, *ports, limits=Limits(seconds=SECONDS), workers=workers
        )  # fmt: skip
        return replace(record, refined=known_sequence(evaluator, found.sequence))


def known_sequence(evaluator: Evaluator, sequence: Sequence) -> KnownSequence:
    """Return a minimised sequence as graph passes, without clean-up, and the tail it was minimised from.

    A tail may have lost passes without effect: of the tails with its passes, that of the same cost is taken.
    """
    module_passes = [each for each in sequence.passes if max(each.levels) <= Level.KERNELS]
    prefix = [
        each for each in module_passes if each.levels == {Level.GRAPH} and each.level_after(Level.GRAPH) == Level.GRAPH
    ]
    rest = [
        replace(each, keep="") if isinstance(each, FuseOperators) else each for each in module_passes[len(prefix) :]
    ]
    cost = evaluator.evaluate((*prefix, *rest)).cost
    tails = [tail for tail in TAILS if all(each in tail for each in rest)] or [TAILS[0]]
    passes = tuple(each for each in prefix if each not in CLEAN_UP) or tuple(prefix[:1])
    costs = [evaluator.evaluate(Candidate(passes, tail).passes) for tail in tails]
    same = [tail for tail, found in zip(tails, costs) if found.footprint is not None and found.cost == cost]
    return KnownSequence(specs_of(passes), specs_of((same or tails)[0]))
