"""Place weights into the read-only memories of a device: each whole in one, the busiest and smallest in the first."""

from __future__ import annotations

from collections.abc import Sequence

from ...program import Program
from ...targets import Target
from ...targets.memory import select_kind
from ..liveness import ALIGNMENT, aligned
from .plan_banks import Room
from .traffic import traffic

#: bytes of the first flash kept for start-up, generated C and the compiler's runtime, which are not linked yet
RESERVE = 16384


def place_weights(program: Program, target: Target, code: int) -> tuple[str, ...]:
    """Return the memory of each weight, by name, along with `code` bytes in the first one; empty if that holds all of them.

    Also empty without a second memory. What fits nowhere is in the last.
    """
    rooms = [
        Room(each.name, each.usable - (0 if number else code + RESERVE))
        for number, each in enumerate(select_kind(target.memories, "flash"))
    ]
    if len(rooms) < 2 or program.weight_bytes <= rooms[0].size:
        return ()
    return homes_of(program, rooms)


def homes_of(program: Program, rooms: Sequence[Room]) -> tuple[str, ...]:
    """Return the room of each weight, by name, filled in order."""
    moved, left = traffic(program)[1], [room.size for room in rooms]
    sizes = [aligned(weight.nbytes, ALIGNMENT) for weight in program.weights]
    homes = [""] * len(sizes)
    for number in sorted(range(len(sizes)), key=lambda each: (-moved[each] / max(1, sizes[each]), sizes[each], each)):
        home = next((each for each, free in enumerate(left) if sizes[number] <= free), len(rooms) - 1)
        homes[number], left[home] = rooms[home].region, left[home] - sizes[number]
    return tuple(homes)
