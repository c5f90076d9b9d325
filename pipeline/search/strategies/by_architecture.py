"""`by-architecture`: try the graph passes that ever mattered for the graph's family, and no others; then tails on the best.

    family of the graph ──► its first prefix, and the passes of all models joined ──► tails on the best graph
                        ──► refinement of the best few; passes that no model has tried

The family follows from the structure (`knowledge/family.py`), its passes from other models (`knowledge/family_table.py`).
After Verma et al. (2022), who assign both by hand. Never closed: the other passes may lead lower.
"""

from __future__ import annotations

from ...passes.base import Pass
from ...passes.sequence.sequence import specs_of
from ..evaluate.candidates import TAILS, Candidate
from ..knowledge.family import family_of
from ..knowledge.family_table import FamilyTable, family_table
from ..knowledge.graph_features import read_graph
from ..knowledge.idle_tails import idle_tails
from .trace import Trace

#: states to refine, at most: those of TVM's default and the best others
REFINED = 4


def by_architecture(trace: Trace, seed: int) -> None:
    """Evaluate the family's passes, then passes no model has tried; deterministic, `seed` is unused.

    A prefix rarely harms, so tails are tried on the best graph alone; and all but the idle ones: a rare tail may be the
    only one that serves this graph, and takes a fraction of the time of `fuse-by-mapping`.
    """
    trace.evaluate(Candidate())
    trace.few = REFINED
    trace.short = True  # what led to the best of other models was minimised there
    trace.family = family_of(read_graph(trace.evaluator.scorer.module(())))
    table = family_table(trace.knowledge.records, trace.family, trace.evaluator.objective)
    allowed: dict[str, Pass] = {each.spec: each for each in trace.passes}
    prefixes = (
        tuple(allowed[spec] for spec in specs if spec in allowed) for specs in (table.first_prefix, table.joined)
    )
    if trace.evaluate_all(map(Candidate, prefixes)):
        return
    prefix, idle = trace.best_candidate.prefix, idle_tails(trace.knowledge.records, trace.evaluator.objective)
    if not trace.evaluate_all(Candidate(prefix, tail) for tail in TAILS if specs_of(tail) not in idle):
        _try_new(trace, table)


def _try_new(trace: Trace, table: FamilyTable) -> None:
    """Climb by the passes that no model has tried: each once, kept if it is better."""
    untried = set(table.untried(specs_of(trace.passes)))
    for each in trace.passes:
        if each.spec in untried and not trace.finished:
            best = trace.best_candidate
            trace.evaluate(Candidate((*best.prefix, each), best.tail))
