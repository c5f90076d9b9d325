"""Answer questions about sets of values; a search of fusion plans asks the same ones in every round.

Sets are the bits of integers. `pending` holds values that do not exist and are still to be read.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from ....memory.order.step_graph import members


@dataclass(frozen=True)
class Values:
    """Dataflow of values 0 … n - 1 in order: those with None in `reads` are inputs, others are computed.

    `nbytes` are the bytes of memory an existing value takes; values in `exist` must exist.
    """

    reads: tuple[tuple[int, ...] | None, ...]
    nbytes: tuple[int, ...]
    exist: frozenset[int]
    outputs: frozenset[int]


#: answers kept for the rounds that follow, some 50 MB for 500 values
_CHOICES = 1 << 16


class Choice(NamedTuple):
    """Consequences of a value's existence: its `group`, the pending values `rest`, and the bytes `held` meanwhile.

    `freed` are the values read for the last time; `more` is pending if the value does not exist, None if it must.
    """

    group: int
    rest: int
    held: int
    freed: int
    more: int | None


class ValueSets:
    """Hold the dataflow of some values, and all answers given so far."""

    def __init__(self, values: Values):
        self._values = values
        count = len(values.reads)
        self.computed = [value for value, reads in enumerate(values.reads) if reads is not None]
        self._operands, self._readers = [0] * count, [0] * count
        last = [count if each in values.outputs else -1 for each in range(count)]
        for reader in self.computed:
            for each in values.reads[reader] or ():
                self._operands[reader] |= 1 << each
                self._readers[each] |= 1 << reader
                last[each] = max(last[each], reader)
        self._later = _later(last)
        self.choice = lru_cache(_CHOICES)(self._choice)
        self._operands_of = lru_cache(_CHOICES)(self._all_operands)
        self._bytes_of = lru_cache(_CHOICES)(lambda group: sum(values.nbytes[each] for each in members(group)))
        self.ends = lru_cache(None)(self._ends)
        self.members = lru_cache(None)(lambda group: frozenset(members(group)))

    def _choice(self, value: int, pending: int) -> Choice:
        """Return the consequences of the existence of `value` after earlier decisions."""
        rest = self._still_pending(pending, value)
        frontier = self._later[value - 1] & ((1 << value) - 1) if value else 0
        live = (frontier | self._operands_of(pending)) & ~pending
        held = self._bytes_of(live)
        freed = live & ~self._later[value] & ~self._operands_of(rest)
        optional = (
            value not in self._values.exist and value not in self._values.outputs and self._later[value] >> value & 1
        )
        more = self._still_pending(pending | 1 << value, value) if optional else None
        return Choice(self._group(value, pending), rest, held, freed, more)

    def _group(self, value: int, pending: int) -> int:
        group, left = 1 << value, self._operands[value] & pending
        while left:
            group |= left
            left = self._operands_of(left) & pending & ~group
        return group

    def _all_operands(self, group: int) -> int:
        found = 0
        for each in members(group):
            found |= self._operands[each]
        return found

    def _still_pending(self, pending: int, value: int) -> int:
        """Keep the pending values that readers after `value` need."""
        left = rest = pending & self._later[value]
        while left:
            left = self._operands_of(left) & pending & ~rest
            rest |= left
        return rest

    def _ends(self, pending: int) -> tuple[int, ...]:
        """Return the groups of the pending values that no pending value reads."""
        return tuple(self._group(each, pending) for each in members(pending) if not self._readers[each] & pending)


def _later(last: list[int]) -> list[int]:
    """Return the values read later, by a value or the caller, per value.

    `last` holds the last reader of each."""
    found = [0] * (len(last) + 1)
    for each, reader in enumerate(last):
        if reader > 0:
            found[reader - 1] |= 1 << each
    for value in reversed(range(len(last))):
        found[value] |= found[value + 1]
    return found


#: rounds, objectives and limits of one graph follow each other
value_sets = lru_cache(2)(ValueSets)
