"""`by-architecture`: search with the passes and tails that ever mattered for the graph's family.

    family of the graph ──► its passes ──► closure over graph states ──► its tails on every state

The family follows from the structure (`knowledge/family.py`), its passes from other models (`knowledge/family_table.py`).
After Verma et al. (2022), who assign both by hand. Never closed, unless nothing was left out.
"""

from __future__ import annotations

from ...passes.sequence.sequence import specs_of
from ..evaluate.candidates import TAILS, Candidate
from ..evaluate.closure import Closure
from ..knowledge.family import family_of
from ..knowledge.family_table import family_table
from ..knowledge.graph_features import read_graph
from .trace import Trace

#: graph states at most
STATES = 12


def by_architecture(trace: Trace, seed: int) -> None:
    """Search the family's actions; deterministic, `seed` is unused."""
    trace.evaluate(Candidate())
    evaluator = trace.evaluator
    trace.family = family_of(read_graph(evaluator.scorer.module(())))
    table = family_table(trace.knowledge.records, trace.family, evaluator.objective)
    passes = tuple(each for each in trace.passes if table.selects(each.spec))
    tails = tuple(tail for tail in TAILS if table.selects_tail(specs_of(tail)))
    closure = Closure(evaluator, passes, STATES)
    complete = (passes, tails) == (trace.passes, TAILS)
    for edge in closure.edges():
        complete = complete and not edge.beyond
        if trace.finished:
            return
    if not trace.evaluate_all(Candidate(prefix, tail) for tail in tails for prefix in closure.prefixes):
        trace.closed = complete
