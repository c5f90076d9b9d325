"""Match results of two sides by model and target."""

from __future__ import annotations

from collections.abc import Mapping

from ...errors import ConfigError
from ..results import Pair, Result


def pairs_of(
    before: Mapping[Pair, Result], after: Mapping[Pair, Result], names: tuple[str, str]
) -> tuple[list[tuple[Result, Result]], list[str]]:
    """Return the results of both sides, and name in sentences each missing on one; `names` are those of the sides.

    One result on each side is a pair whatever its model and target, as for two models that are alternatives. Raises
    ConfigError where nothing matches.
    """
    both = [(before[pair], after[pair]) for pair in before if pair in after]
    if not both and len(before) == len(after) == 1:
        return [(next(iter(before.values())), next(iter(after.values())))], []
    alone = [
        f"{model} @ {target}: only {name} has it"
        for name, ours, others in ((names[0], before, after), (names[1], after, before))
        for model, target in ours
        if (model, target) not in others
    ]
    if not both:
        raise ConfigError(
            f"{names[0]} and {names[1]} have no model and target in common: {'; '.join(alone)}.", "Name other results."
        )
    return both, alone
