"""Share memory between fresh rows: a row is in a slot until the stages that read it have run, and only then in its ring.

    tick 7    step 1 ── a7 ──► step 2 ── b7 ──► step 3 ── c7 ──► step 4
    slot 0           a7                         c7
    slot 1                     b7
    rings     a5 a6            –                c5 c6                    a7 goes over a5, c7 over c5

A ring needs room for one row less, and none if no row is read again. Here it is decided which rows have a slot, and for how
many bytes; `placement/plan_loop.py` places them with all values of a tick. Intervals are colored largest first, so that no
slot grows.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple


class FreshRows(NamedTuple):
    """Fresh rows of a tensor: their bytes at a time, from the step that makes them to the last that reads them.

    `kept` says that some are read again at later ticks: from a ring.
    """

    nbytes: int
    dtype: str
    first: int
    last: int
    kept: bool


def assign_slots(fresh: Sequence[FreshRows]) -> list[int | None]:
    """Assign a slot number to each item, None if its ring holds its fresh rows too.

    Items of one slot have one dtype, and are never there at one step. A slot of one item alone would only add a copy: such rows stay in their ring, if there is one.
    """
    slots: list[tuple[str, list[tuple[int, int]], list[int]]] = []
    for number in sorted(range(len(fresh)), key=lambda n: (-fresh[n].nbytes, fresh[n].first)):
        each = fresh[number]
        for dtype, taken, members in slots:
            at = bisect_right(taken, (each.first, each.last))
            free = (not at or taken[at - 1][1] < each.first) and (at == len(taken) or each.last < taken[at][0])
            if dtype == each.dtype and free:
                taken.insert(at, (each.first, each.last))
                members.append(number)
                break
        else:
            slots.append((each.dtype, [(each.first, each.last)], [number]))
    numbers: list[int | None] = [None] * len(fresh)
    shared = [members for *_, members in slots if len(members) > 1 or not fresh[members[0]].kept]
    for slot, members in enumerate(shared):
        for number in members:
            numbers[number] = slot
    return numbers
