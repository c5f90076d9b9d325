"""`by-architecture`: try the passes and tails that ever mattered for the graph's family, and no others.

    family of the graph ──► its tails, each after its first prefix and after the passes of all models joined
                        ──► sequences that led to the best of its models ──► untried passes

The family follows from the structure (`knowledge/family.py`), its passes from other models (`knowledge/family_table.py`).
After Verma et al. (2022), who assign both by hand. Never closed: the other passes may lead lower.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from ...passes.base import Pass
from ...passes.sequence.sequence import specs_of
from ..evaluate.candidates import TAILS, Candidate, cleaned
from ..knowledge.family import family_of
from ..knowledge.family_table import FamilyTable, family_table
from ..knowledge.graph_features import read_graph
from ..knowledge.record import KnownSequence
from .trace import Trace

#: graphs by tails that known passes lead to, at most; each is refined. Six took 10 to 30 % more time, and 64 bytes less of
#: one model of nine
STATES = 4


def by_architecture(trace: Trace, seed: int) -> None:
    """Evaluate the family's sequences, then passes no model has tried; deterministic, `seed` is unused."""
    trace.evaluate(Candidate())
    trace.short = True  # what led to the best of other models was minimised there
    evaluator = trace.evaluator
    trace.family = family_of(read_graph(evaluator.scorer.module(())))
    table = family_table(trace.knowledge.records, trace.family, evaluator.objective)
    known = (Candidate(), *_known(table, trace.passes))
    graphs = list(evaluator.keys(cleaned(each.prefix) for each in known))
    distinct: dict[object, Candidate] = {}
    for graph, each in zip(graphs, known):
        if graph is not None:
            distinct.setdefault((graph, each.tail), each)
    if not trace.evaluate_all(islice(distinct.values(), STATES)):
        _try_new(trace, table)


def _known(table: FamilyTable, passes: tuple[Pass, ...]) -> Iterator[Candidate]:
    """Yield the family's tails, each after its first prefix and after the joined passes; then its sequences as they are.

    A prefix rarely harms, and a tail may need it. The joined passes come early, for a graph that needs a pass few have
    needed: for four states of each of 52 known models, ram with whole kernels was 1.5 % above the best, else 1.9 %.
    """
    allowed = {each.spec: each for each in passes}
    tails = {specs_of(tail): tail for tail in TAILS}
    led = tuple(dict.fromkeys(each.tail for each in table.sequences))
    crossed = (KnownSequence(prefix, tail) for tail in led for prefix in (table.first_prefix, table.joined))
    for each in (*crossed, *table.sequences):
        if each.tail in tails:
            yield Candidate(tuple(allowed[spec] for spec in each.prefix if spec in allowed), tails[each.tail])


def _try_new(trace: Trace, table: FamilyTable) -> None:
    """Climb by the passes and tails that no model has tried: each once, kept if it is better."""
    untried = set(table.untried(specs_of(trace.passes)))
    new_tails = set(table.untried_tails(map(specs_of, TAILS)))
    for tail in TAILS:
        if specs_of(tail) in new_tails and not trace.finished:
            trace.evaluate(Candidate(trace.best_candidate.prefix, tail))
    for each in trace.passes:
        if each.spec in untried and not trace.finished:
            best = trace.best_candidate
            trace.evaluate(Candidate((*best.prefix, each), best.tail))
