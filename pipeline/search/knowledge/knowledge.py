"""What is known of other models, as a search uses it: what to try first, and in which order to go on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...passes.base import Pass
from ...passes.sequence.catalogue import parse_spec
from ...passes.sequence.sequence import specs_of
from ..evaluate.candidates import Candidate
from .coreset import coreset
from .predictor import Features, Predictor, Query
from .record import KnownSequence, ModelRecord
from .store import SHIPPED, merged, read_records

#: sequences in a coreset, at most; and what each must lower the mean relative cost by
MOST, LEAST = 8, 0.001

#: the features of the graph that the graph passes of a candidate lead to
FeaturesOf = Callable[[tuple[Pass, ...]], Features]

#: candidates, the promising ones first; a permutation that keeps the order of those it cannot tell apart
Ranking = Callable[[Sequence[Candidate]], list[Candidate]]


@dataclass(frozen=True)
class Knowledge:
    """The records of all known models. Without any, nothing is tried first and every order is kept."""

    records: tuple[ModelRecord, ...] = ()

    def coreset(self, objective: str, most: int = MOST) -> tuple[Candidate, ...]:
        """The sequences that together serve the known models best, the most valuable first; see coreset.py."""
        return tuple(map(_candidate, self.known_sequences(objective, most)))

    def known_sequences(self, objective: str, most: int = MOST) -> list[KnownSequence]:
        """The coreset by its specs, chosen among the winners of all models and what the best of them make together.

        Passes that change nothing on a model cost nothing there, so one sequence can serve where two were needed.
        """
        winners = {sequence for record in self.records for sequence in record.winners(objective)}
        chosen = self._chosen(winners, objective, most)
        joined = {each for first in chosen for second in chosen for each in _joined(first, second)}
        return self._chosen({*chosen, *joined}, objective, most)

    def _chosen(self, pool: Iterable[KnownSequence], objective: str, most: int) -> list[KnownSequence]:
        ordered = sorted(pool, key=lambda each: (len(each.prefix), each.prefix, each.tail))
        best = [record.best(objective) for record in self.records]
        costs = {
            each: [record.cost(each, objective) / least for record, least in zip(self.records, best, strict=True)]
            for each in ordered
        }
        return coreset(costs, [1 / least for least in best], most, LEAST)

    def ranking(self, objective: str, features_of: FeaturesOf) -> Ranking:
        """Orders candidates on one graph by what the known models let expect of them; see predictor.py.

        `features_of` is asked for the prefix of every candidate; see `explore.features_of`.
        """
        if not self.records:
            return list
        predictor = Predictor(self.records, objective)

        def ranked(candidates: Sequence[Candidate]) -> list[Candidate]:
            known = {prefix: features_of(prefix) for prefix in {(): None} | {each.prefix: None for each in candidates}}
            queries = [
                Query(known[()], known[each.prefix], specs_of(each.tail)) for each in candidates
            ]
            order = zip(predictor.predict(queries), range(len(candidates)), strict=True)
            return [candidates[number] for _, number in sorted(order)]

        return ranked


def load_knowledge(extra: Path | None = None) -> Knowledge:
    """What ships with passfit, and what a model repo learnt. Raises ConfigError where a file cannot be used."""
    return Knowledge(merged(read_records(SHIPPED), read_records(extra) if extra is not None else ()))


def _joined(first: KnownSequence, second: KnownSequence) -> Iterator[KnownSequence]:
    """The graph passes of one, then those of the other that are new, by either tail."""
    prefix = (*first.prefix, *(spec for spec in second.prefix if spec not in first.prefix))
    yield KnownSequence(prefix, first.tail)
    yield KnownSequence(prefix, second.tail)


def _candidate(sequence: KnownSequence) -> Candidate:
    return Candidate(tuple(map(parse_spec, sequence.prefix)), tuple(map(parse_spec, sequence.tail)))
