"""Random program passes that fit a lowered program: regions of all kinds, in loops too, steps run again, sums cut, other orders."""

from __future__ import annotations

from typing import TYPE_CHECKING

from passfit.errors import SequenceError
from passfit.passes.sequence.catalogue import parse_spec
from passfit.program.bodies import loops_of

from .quantised_models import Choose

if TYPE_CHECKING:
    from passfit.kernels.lower.lower import Lowered
    from passfit.program import Program

#: proposals made for each pass, of which the first that fits is taken
_TRIES = 12


def random_splits(choose: Choose, lowered: Lowered, most: int = 3) -> tuple[str, ...]:
    """Return the specs of up to `most` passes, each of which fits what those before it made of the program."""
    found: list[str] = []
    for _ in range(choose(range(1, most + 1))):
        for _ in range(_TRIES):
            spec = _proposal(choose, lowered.program)
            try:
                lowered = parse_spec(spec).apply(lowered)
            except SequenceError:
                continue
            found.append(spec)
            break
    return tuple(found)


def _proposal(choose: Choose, program: Program) -> str:
    loops = [(path, loop.body) for path, loop in loops_of(program)]
    above, within = choose([((), program), *loops * 4]) if loops else ((), program)
    path, steps = "".join(f"{number}." for number in above), len(within.steps)
    kinds = ("rows", "rows", "rows", "rows", "channels", "channels", "again", "sums", "order")
    kind = choose(kinds[: -2 if above else None])
    first = choose(range(steps))
    if kind == "sums":
        return "cut-sums"
    if kind == "order":
        return choose(("order", "order{by=given}"))
    if kind == "again":
        return f"rematerialise{{steps={path}{first},before={choose(range(first, steps + 1))}{choose(('', ',move=1'))}}}"
    last = min(steps - 1, first + choose((0, 1, 1, 2, 3, 5)))
    in_place = choose(("", "", "", ",in_place=1", ",in_place=2"))
    if kind == "channels":
        return f"split-channels{{steps={path}{first}-{path}{last},channels={choose((1, 2, 3, 4, 8))}{in_place}}}"
    return f"split-rows{{steps={path}{first}-{path}{last},axis={choose((2, 2, 3, 1) if not above else (2, 1, 1, 0))},rows={choose((1, 1, 2, 3, 4))}{in_place}}}"
