"""Select the tails that known models hardly needed, whichever family they are of.

Families say little of tails: of the models that a rare tail serves, few are known, and these are of several families.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from .family_table import ENOUGH, led_to_best
from .record import ModelRecord, Specs

#: least reduction of the cost of a graph, as a fraction, that makes a tail needed: each takes about a tenth of a search
LEAST = 0.1


def idle_tails(records: Sequence[ModelRecord], objective: str) -> frozenset[Specs]:
    """Return the idle tails: few models' best has them, and they lower no graph far below the tails before."""
    known = {tail for record in records for tail in record.tails}
    led = Counter(led_to_best(record, objective).tail for record in records)
    often = {tail for tail, models in led.items() if models >= ENOUGH}
    return frozenset(known - often - set(_lowering(records, objective)))


def _lowering(records: Iterable[ModelRecord], objective: str) -> Iterator[Specs]:
    """Yield the tails that lower the cost of a graph by LEAST, once for each graph; and the first one, TVM's default."""
    for record in records:
        yield record.tails[0]
        for state in range(len(record.states)):
            least = record.cost_of(state, 0, objective)
            for number, tail in enumerate(record.tails):
                cost = record.cost_of(state, number, objective)
                if cost is not None and least is not None and cost < least * (1 - LEAST):
                    least = cost
                    yield tail
