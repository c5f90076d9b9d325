"""Select the passes and tails that matter for a family of graphs, by the records of its models.

    records of the family ──► shortest sequences to the best of each ──► evidence per pass and tail ──► selection

After Verma et al. (2022), who choose by hand. Anything no record has tried, a pass added since, is selected.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from .record import ModelRecord, Specs

#: models of a family from which on its own records decide; below, those of all families do
ENOUGH = 2


@dataclass(frozen=True)
class Evidence:
    """Count the models on which a pass, or a tail, was tried, changed a state, and led to the best."""

    tried: int
    changed: int
    led: int


@dataclass(frozen=True)
class FamilyTable:
    """Evidence of a family for one objective; `models` are its records, `borrowed` those of all families."""

    family: str
    models: int
    borrowed: bool
    passes: Mapping[str, Evidence]
    tails: Mapping[Specs, Evidence]

    def selects(self, spec: str) -> bool:
        """Tell whether a graph pass is to be tried."""
        return _matters(self.passes.get(spec))

    def selects_tail(self, tail: Specs) -> bool:
        """Tell whether a tail is to be tried."""
        return _matters(self.tails.get(tail))


def family_table(records: Sequence[ModelRecord], family: str, objective: str) -> FamilyTable:
    """Gather the evidence of a family; a family of fewer than ENOUGH models borrows that of all."""
    own = [record for record in records if record.family == family]
    borrowed = len(own) < ENOUGH
    used = list(records) if borrowed else own
    return FamilyTable(
        family, len(own), borrowed,
        _evidence(
            (record.passes for record in used),
            ({spec for state in record.states for spec in state.edges} for record in used),
            ({spec for sequence in _led(record, objective) for spec in sequence[0]} for record in used),
        ),
        _evidence(
            (record.tails for record in used), (_distinct(record) for record in used),
            ({sequence[1] for sequence in _led(record, objective)} for record in used),
        ),
    )  # fmt: skip


def _matters(evidence: Evidence | None) -> bool:
    return evidence is None or not evidence.tried or evidence.led > 0


def _evidence(tried: Iterable[Iterable], changed: Iterable[Iterable], led: Iterable[Iterable]) -> dict:
    counts = [Counter(name for names in each for name in names) for each in (tried, changed, led)]
    return {name: Evidence(*(count[name] for count in counts)) for name in sorted(set().union(*counts))}


def _led(record: ModelRecord, objective: str) -> list[tuple[Specs, Specs]]:
    """Return the first of the shortest sequences to the best, as prefix and tail; TVM's default if it is one."""
    winners = [(each.prefix, each.tail) for each in record.winners(objective)]
    return [min(winners, key=lambda each: (len(each[0]), record.tails.index(each[1])))]


def _distinct(record: ModelRecord) -> list[Specs]:
    """Return the tails whose kernels differ from TVM's default on some state."""
    return [
        tail
        for number, tail in enumerate(record.tails)
        if any(state.outcomes[number] not in (None, state.outcomes[0]) for state in record.states)
    ]
