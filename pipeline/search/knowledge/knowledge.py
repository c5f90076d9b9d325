"""Knowledge of other models as a search uses it: a coreset to try first, and a ranking."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...passes.base import Pass
from ...passes.sequence.catalogue import parse_spec
from ...passes.sequence.sequence import specs_of
from ...support.result_store import shared_store
from ..evaluate.candidates import Candidate
from .coreset import coreset
from .predictor import CostPredictor, Features, Query
from .record import KnownSequence, ModelRecord
from .store import SHIPPED, merge, read_records

#: sequences in a coreset, at most; and the least reduction of the mean relative cost by each
MOST, LEAST = 8, 0.001

#: features of the graph after the graph passes of a candidate
FeaturesOf = Callable[[tuple[Pass, ...]], Features]

#: stable sort of candidates, the promising ones first
Ranking = Callable[[Sequence[Candidate]], list[Candidate]]


@dataclass(frozen=True)
class Knowledge:
    """Records of all known models. Without records, the coreset is empty and rankings keep the order."""

    records: tuple[ModelRecord, ...] = ()

    def coreset(self, objective: str, most: int = MOST) -> tuple[Candidate, ...]:
        """Return the coreset of the known models, most valuable first; see coreset.py."""
        return tuple(map(_candidate, self.known_sequences(objective, most)))

    def known_sequences(self, objective: str, most: int = MOST) -> list[KnownSequence]:
        """Select the coreset by specs, among all models' winners and joins of the best.

        Passes that change nothing on a model cost nothing there, so one joined sequence can replace two.
        """
        winners = {sequence for record in self.records for sequence in record.winners(objective)}
        chosen = self._choose(winners, objective, most)
        joined = {each for first in chosen for second in chosen for each in _join(first, second)}
        return self._choose({*chosen, *joined}, objective, most)

    def _choose(self, pool: Iterable[KnownSequence], objective: str, most: int) -> list[KnownSequence]:
        ordered = sorted(pool, key=lambda each: (len(each.prefix), each.prefix, each.tail))
        best = [record.best(objective) for record in self.records]
        costs = {
            each: [record.cost(each, objective) / least for record, least in zip(self.records, best, strict=True)]
            for each in ordered
        }
        return coreset(costs, [1 / least for least in best], most, LEAST)

    def ranking(self, objective: str, features_of: FeaturesOf) -> Ranking:
        """Rank candidates on one graph by their predicted cost; see predictor.py.

        `features_of` is asked for the prefix of every candidate; see `explore.features_of`.
        """
        if not self.records:
            return list

        def rank(candidates: Sequence[Candidate]) -> list[Candidate]:
            known = {prefix: features_of(prefix) for prefix in {(): None} | {each.prefix: None for each in candidates}}
            queries = [Query(known[()], known[each.prefix], specs_of(each.tail)) for each in candidates]
            costs = self._predict(objective, queries)
            order = zip([costs[query] for query in queries], range(len(candidates)), strict=True)
            return [candidates[number] for _, number in sorted(order)]

        return rank

    def _predict(self, objective: str, queries: Iterable[Query]) -> dict[Query, float]:
        """Predict the cost of each query; fitting takes a second, so costs are kept for searches of other targets."""
        asked = sorted(set(queries), key=repr)
        key = hashlib.sha256(repr((self.records, objective, asked)).encode()).hexdigest()[:32]
        costs = shared_store().get_or_make(
            f"costs {key}", lambda: CostPredictor(self.records, objective).predict(asked)
        )
        return dict(zip(asked, costs, strict=True))


def load_knowledge(extra: Path | None = None) -> Knowledge:
    """Load the shipped knowledge, merged with a model repo's. Raises ConfigError for an unusable file."""
    return Knowledge(merge(read_records(SHIPPED), read_records(extra) if extra is not None else ()))


def _join(first: KnownSequence, second: KnownSequence) -> Iterator[KnownSequence]:
    """Join two sequences: graph passes of one, then new ones of the other, by either tail."""
    prefix = (*first.prefix, *(spec for spec in second.prefix if spec not in first.prefix))
    yield KnownSequence(prefix, first.tail)
    yield KnownSequence(prefix, second.tail)


def _candidate(sequence: KnownSequence) -> Candidate:
    return Candidate(tuple(map(parse_spec, sequence.prefix)), tuple(map(parse_spec, sequence.tail)))
