"""Plan an arena over several memories of a device: banks, which no buffer crosses.

    one arena                     banks: a wall at the end of each memory but the last
    offset ▲ ┌─────┐                       ┌─────┐
           │ │  c  │ ┌────┐                │  c  │ ┌────┐   second memory
           │ ├─────┤ │ d  │       ════════╪═════╪═╪════╪═══ wall
           │ │  a  │ │    │                │  a  │ │ d  │   first memory: the fastest, for the busiest buffers
           └─┴─────┴─┴────┴──► steps       └─────┘ └────┘

The memories are tried in the device's order: first one alone, then all up to it, the fastest filled first. The arena in one
block, cut at the walls, is the first candidate: it needs at most one largest buffer more for each wall. Greedy placements
below the walls follow. Of those with about the fewest bytes, the one that moves most in the fastest memory is taken.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate

from ...program import Program
from ...targets import Target
from ...targets.memory import select_kind
from ..liveness import BufferParts
from .greedy import Box, Placement, conflicts, neighbours, orders, place_lowest, promoted
from .plan_arena import ArenaPlan, Bank, boxes_of
from .traffic import traffic

#: bytes of the first ram kept for the stack and for small data, neither of which is known yet, where there is another memory;
#: as many of them as fit, if not all do
RESERVE = 4096
#: a plan with this part more than the fewest bytes is taken if it moves more of them in the faster memories
SLACK = 16


@dataclass(frozen=True)
class Room:
    """Bytes for an arena in the memory `region`; the least `slowness` is the fastest."""

    region: str
    size: int
    slowness: tuple[bool, int] = (False, 0)


def plan_on(program: Program, plan: ArenaPlan, target: Target, workspace: int) -> ArenaPlan:
    """Return the plan in the memories of a target; `workspace` bytes beside the arena are in the first.

    As much is kept for the stack as lets the plan fit, up to RESERVE: the stack is measured later, and may need less.
    """

    def planned(reserve: int) -> tuple[ArenaPlan, int]:
        rooms = rooms_of(target, workspace + reserve)
        found = plan_banks(program, plan, rooms, target.alignment)
        return found, excess_of(found, rooms)

    best, excess = planned(RESERVE)
    if not excess:
        return best
    best, excess = planned(1)  # no stack is empty
    if excess:
        return planned(target.stack_reserve)[0]
    low, high = 0, RESERVE // target.alignment
    while high - low > 1:
        middle = (low + high) // 2
        tried, over = planned(middle * target.alignment)
        if over:
            high = middle
        else:
            low, best = middle, tried
    return best


def rooms_of(target: Target, beside: int) -> tuple[Room, ...]:
    """Return the room for an arena in each ram; the first holds `beside` other bytes."""
    found, alignment = [], target.alignment
    for number, each in enumerate(select_kind(target.memories, "ram")):
        free = each.usable - (-each.start) % alignment - (0 if number else beside)
        found.append(Room(each.name, max(0, free) // alignment * alignment, each.slowness))
    return tuple(found)


def plan_banks(program: Program, plan: ArenaPlan, rooms: Sequence[Room], alignment: int) -> ArenaPlan:
    """Move a plan that does not fit the first of `rooms` to another, or over several.

    If nothing fits, the plan with the fewest bytes too many is returned. Deterministic.
    """
    if len(rooms) < 2 or plan.arena <= rooms[0].size:
        return plan
    excess, best = plan.arena - rooms[0].size, plan
    for tried in _plans(program, plan, rooms, alignment):
        over = excess_of(tried, rooms)
        if over < excess:
            excess, best = over, tried
        if not over:
            break
    return best


def excess_of(plan: ArenaPlan, rooms: Sequence[Room]) -> int:
    """Return by how many bytes a plan exceeds the room for it, in all memories together."""
    banks = plan.banks or (Bank(rooms[0].region, plan.arena),)
    sizes = {room.region: room.size for room in rooms}
    return sum(max(0, bank.size - sizes[bank.region]) for bank in banks)


def _plans(program: Program, plan: ArenaPlan, rooms: Sequence[Room], alignment: int) -> Iterator[ArenaPlan]:
    """Yield plans in more and more memories: in the next one alone, then over all up to it."""
    for number in range(2, len(rooms) + 1):
        some = rooms[:number]
        yield replace(plan, banks=(Bank(some[-1].region, plan.arena),))
        if number == len(rooms) or plan.bound <= sum(room.size for room in some):
            yield _spread(program, plan, sorted(some, key=lambda room: room.slowness), alignment)


def _spread(program: Program, plan: ArenaPlan, rooms: Sequence[Room], alignment: int) -> ArenaPlan:
    """Plan over all memories, filled in this order; only the last one may overflow."""
    chosen, unit, boxes = boxes_of(program, BufferParts(program, alignment), alignment)
    moved = traffic(program)[0]
    busy = [moved[index] for index in chosen]
    # positions in units: bank k is between walls k and k + 1, the last one is open
    walls = list(accumulate((room.size // unit for room in rooms[:-1]), initial=0))
    found = [
        _cut(boxes, [plan.offsets[index] // unit for index in chosen], walls),
        *_fill_banks(boxes, busy, walls, rooms[-1].size // unit),
    ]
    best = _best(found, boxes, busy, walls, rooms[-1].size // unit)
    offsets, banks, start = [0] * len(program.buffers), list[Bank](), 0
    for number, room in enumerate(rooms):
        inside = [n for n, low in enumerate(best.offsets) if _bank(walls, low) == number]
        for box in inside:
            offsets[chosen[box]] = start + (best.offsets[box] - walls[number]) * unit
        if inside:
            top = max(best.offsets[box] + boxes[box].size for box in inside)
            banks.append(Bank(room.region, (top - walls[number]) * unit))
            start += banks[-1].size
    return replace(plan, offsets=tuple(offsets), arena=start, proved=start == plan.bound, banks=tuple(banks))


def _best(
    found: Sequence[Placement], boxes: Sequence[Box], busy: Sequence[int], walls: Sequence[int], room: int
) -> Placement:
    """Return the placement with the least beyond the `room` in the last memory; of those about as low, the quickest."""
    heights, moved = [], []
    for placement in found:
        tops, inside = [0] * len(walls), [0] * len(walls)
        for box, nbytes, offset in zip(boxes, busy, placement.offsets, strict=True):
            bank = _bank(walls, offset)
            tops[bank] = max(tops[bank], offset + box.size - walls[bank])
            inside[bank] -= nbytes
        heights.append((max(0, tops[-1] - room), sum(tops)))
        moved.append(inside)
    excess, least = min(heights)
    near = [
        number for number, (over, height) in enumerate(heights) if over == excess and height <= least + least // SLACK
    ]
    return found[min(near, key=lambda number: (moved[number], heights[number]))]


def _bank(walls: Sequence[int], offset: int) -> int:
    return bisect_right(walls, offset) - 1


def _cut(boxes: Sequence[Box], offsets: Sequence[int], walls: Sequence[int]) -> Placement:
    """Cut a placement at the walls: the boxes that end above one move behind it together."""
    found, left = list(offsets), list(range(len(boxes)))
    for number, wall in enumerate(walls):
        lowest = min((offsets[box] for box in left), default=0)
        for box in left:
            found[box] = offsets[box] - lowest + wall
        if number + 1 < len(walls):
            left = [box for box in left if found[box] + boxes[box].size > walls[number + 1]]
    return Placement(tuple(found), max((low + box.size for low, box in zip(found, boxes, strict=True)), default=0))


def _fill_banks(boxes: Sequence[Box], busy: Sequence[int], walls: Sequence[int], room: int) -> Iterator[Placement]:
    """Yield greedy placements below the walls: the busiest boxes first, then in the planner's orders.

    Boxes on top of a last memory that exceeds its `room` are taken first in the next round.
    """
    near = neighbours(boxes)
    density = [nbytes / (box.size * box.length) for nbytes, box in zip(busy, boxes, strict=True)]
    busiest = sorted(range(len(boxes)), key=lambda box: (-density[box], -boxes[box].size, box))
    place = partial(place_lowest, boxes, conflicts(boxes, near), walls=walls)
    yield from promoted((busiest, *orders(boxes, near)), boxes, place, walls[-1] + room)
