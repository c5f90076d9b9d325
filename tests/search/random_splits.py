"""Random program passes that fit a lowered program: regions of all kinds, steps run again, sums cut, other orders."""

from __future__ import annotations

from typing import TYPE_CHECKING

from passfit.errors import SequenceError
from passfit.passes.sequence.catalogue import parse_spec

from .quantised_models import Choose

if TYPE_CHECKING:
    from passfit.kernels.lower.lower import Lowered

#: proposals made for each pass, of which the first that fits is taken
_TRIES = 12


def random_splits(choose: Choose, lowered: Lowered, most: int = 3) -> tuple[str, ...]:
    """Return the specs of up to `most` passes, each of which fits what those before it made of the program."""
    found: list[str] = []
    for _ in range(choose(range(1, most + 1))):
        for _ in range(_TRIES):
            spec = _proposal(choose, len(lowered.program.steps))
            try:
                lowered = parse_spec(spec).apply(lowered)
            except SequenceError:
                continue
            found.append(spec)
            break
    return tuple(found)


def _proposal(choose: Choose, steps: int) -> str:
    kind = choose(("rows", "rows", "rows", "rows", "channels", "channels", "again", "sums", "order"))
    first = choose(range(steps))
    if kind == "sums":
        return "cut-sums"
    if kind == "order":
        return choose(("order", "order{by=given}"))
    if kind == "again":
        return f"rematerialise{{steps={first},before={choose(range(first, steps + 1))}{choose(('', ',move=1'))}}}"
    last = min(steps - 1, first + choose((0, 1, 1, 2, 3, 5)))
    in_place = choose(("", "", "", ",in_place=1", ",in_place=2"))
    if kind == "channels":
        return f"split-channels{{steps={first}-{last},channels={choose((1, 2, 3, 4, 8))}{in_place}}}"
    return f"split-rows{{steps={first}-{last},axis={choose((2, 2, 3, 1))},rows={choose((1, 1, 2, 3, 4))}{in_place}}}"
