"""Select the passes and tails that matter for a family of graphs, by the records of its models.

    records of the family ──► shortest sequence to the best of each ──► evidence per pass and tail ──► selection

After Verma et al. (2022), who choose by hand. Anything no record has tried, a pass added since, is selected.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from .record import KnownSequence, ModelRecord, Specs

#: models of a family from which on its own records decide, and of those that a pass changes; below, all families' do
ENOUGH = 3
#: its effect follows every graph pass of a candidate, so it is nothing that another pass did
_CLEAN_UP = "canonicalize-bindings"


@dataclass(frozen=True)
class Evidence:
    """Count the models on which a pass or tail was tried, changed a state, led to the best."""

    tried: int
    changed: int
    led: int


@dataclass(frozen=True)
class FamilyTable:
    """Evidence of a family for one objective; `models` are its records.

    `borrowed`: these are too few, and the evidence is that of all families. `sequences` led to the best of a model, the
    most frequent first; of equals the more frequent of all families, by sequence and by tail, then the shorter one.
    `joined` are the passes of all sequences, and those that change too few models to judge: of this family if they led
    to the best in others, else of all. The most frequent of all families first.
    """

    family: str
    models: int
    borrowed: bool
    passes: Mapping[str, Evidence]
    tails: Mapping[Specs, Evidence]
    sequences: tuple[KnownSequence, ...]
    joined: Specs

    @property
    def first_prefix(self) -> Specs:
        """Return the passes of the most frequent sequence that has any; the first of the joined ones without."""
        return next((each.prefix for each in self.sequences if each.prefix), self.joined[:1])

    def untried(self, specs: Iterable[str]) -> Specs:
        """Return the untried `specs`: no model of the evidence has them."""
        return tuple(each for each in specs if each not in self.passes or not self.passes[each].tried)


def family_table(records: Sequence[ModelRecord], family: str, objective: str) -> FamilyTable:
    """Gather the evidence of a family; a family of fewer than ENOUGH models borrows that of all."""
    own = [record for record in records if record.family == family]
    borrowed = len(own) < ENOUGH
    used = list(records) if borrowed else own
    everywhere = [led_to_best(record, objective) for record in records]
    led = everywhere if borrowed else [best for record, best in zip(records, everywhere) if record.family == family]
    counts = Counter(led)
    alike, tailed = Counter(everywhere), Counter(each.tail for each in everywhere)
    order = sorted(
        counts,
        key=lambda each: (-counts[each], -alike[each], -tailed[each.tail], len(each.prefix), each.prefix, each.tail),
    )
    passes = _evidence_of_passes(used, led)
    tails = _evidence((record.tails for record in used), map(_distinct, used), ([each.tail] for each in led))
    joined = _join(everywhere, passes, _evidence_of_passes(records, everywhere))
    return FamilyTable(family, len(own), borrowed, passes, tails, tuple(order), joined)


def _join(best: Iterable[KnownSequence], own: Mapping[str, Evidence], known: Mapping[str, Evidence]) -> Specs:
    """Return the passes of all `best`, and passes of too few models; less those that changed ENOUGH of `own` in vain."""
    counts = Counter(spec for each in best for spec in set(each.prefix))
    few = [spec for spec, found in known.items() if 0 < found.changed < ENOUGH]
    rest = Evidence(0, 0, 0)
    judged = {spec: own.get(spec, rest).led or own.get(spec, rest).changed < ENOUGH for spec in (*counts, *few)}
    return tuple(spec for spec in sorted(judged, key=lambda each: (-counts[each], each)) if judged[spec])


def _evidence_of_passes(records: Sequence[ModelRecord], led: Iterable[KnownSequence]) -> dict[str, Evidence]:
    return _evidence((record.passes for record in records), map(_changing, records), (set(each.prefix) for each in led))


def _evidence(tried: Iterable[Iterable], changed: Iterable[Iterable], led: Iterable[Iterable]) -> dict:
    counts = [Counter(name for names in each for name in names) for each in (tried, changed, led)]
    return {name: Evidence(*(count[name] for count in counts)) for name in sorted(set().union(*counts))}


def led_to_best(record: ModelRecord, objective: str) -> KnownSequence:
    """Return the first of the shortest sequences to the best; TVM's default if it is one.

    For ram, that is the best after refinement, if known: fewer kernels can be split in more ways.
    """
    if objective == "ram" and record.refined is not None:
        return record.refined
    return min(
        record.winners(objective), key=lambda each: (len(each.prefix), record.tails.index(each.tail)),
        default=KnownSequence((), record.tails[0]),
    )  # fmt: skip


def _changing(record: ModelRecord) -> set[str]:
    """Return the passes that change a state by more than the clean-up that follows them."""
    return {
        spec
        for state in record.states
        for spec, after in state.edges.items()
        if spec == _CLEAN_UP or after != state.edges.get(_CLEAN_UP)
    }


def _distinct(record: ModelRecord) -> list[Specs]:
    """Return the tails whose kernels differ from TVM's default on some state."""
    return [
        tail
        for number, tail in enumerate(record.tails)
        if any(state.outcomes[number] not in (None, state.outcomes[0]) for state in record.states)
    ]
