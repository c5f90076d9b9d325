"""Keep plans of splits in the store, by the form of their program: most targets share them.

"partition 1f3a… 64 inf": {"regions": [{"first": 0, "last": 4, …}], "nbytes": 8192, "reached": 12, "complete": true}
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import lru_cache, reduce

from ...memory.streaming.partition import partition_within
from ...memory.streaming.partitioner import Partition, StreamedSteps
from ...memory.streaming.region_forms import KnownForms
from ...memory.streaming.rematerialise import Repeat, RepeatResult, best_repeats, repeat_steps
from ...passes.sequence.catalogue import parse_spec
from ...passes.sequence.sequence import specs_of
from ...program import Program, Splits
from ...support.result_store import shared_store
from ..evaluate.scoring import Arrangement

#: bound in bytes and passes of each sharing of a plan
Sharings = list[tuple[int, Arrangement]]


def stored_partition(
    form: str, program: Program, splits: Mapping[str, Splits], alignment: int, most: float = math.inf
) -> Partition | None:
    """Return the `partition_within` so many bytes of the program of a form."""
    return shared_store().get_or_make_as(
        Partition | None,
        f"partition {form} {alignment} {most}",
        lambda: partition_within(most, program, splits, alignment, _forms(alignment)),
    )


def stored_repeats(
    form: str, program: Program, splits: Mapping[str, Splits], alignment: int, work: int, steps: int
) -> RepeatResult:
    """Return the `best_repeats` of the program of a form."""

    def search() -> tuple[object, ...]:
        found = best_repeats(program, splits, work, alignment, steps, _forms(alignment))
        return found.repeats, found.path, found.refused, found.tried

    kind = tuple[tuple[Repeat, ...], Partition, bool, int]
    key = f"repeats {form} {alignment} {work} {steps}"
    repeats, path, refused, tried = shared_store().get_or_make_as(kind, key, search)
    return RepeatResult(reduce(repeat_steps, repeats, program), repeats, path, refused, tried)


def stored_sharings(form: str, made: tuple[object, ...], make: Callable[[], Sharings]) -> Sharings:
    """Return the sharings of a split program of a form; the repr of `made` identifies the splits."""
    found = shared_store().get_or_make(
        f"sharings {form} {made!r}", lambda: [[least, specs_of(passes)] for least, passes in make()]
    )
    return [(least, tuple(map(parse_spec, specs))) for least, specs in found]


def stored_fewest(
    form: str, made: tuple[object, ...], make: Callable[[], tuple[StreamedSteps, ...]]
) -> tuple[StreamedSteps, ...]:
    """Return the regions of a plan without redundant ones; the repr of `made` identifies the plan."""
    return shared_store().get_or_make_as(tuple[StreamedSteps, ...], f"fewest {form} {made!r}", make)


def _forms(alignment: int) -> KnownForms:
    """Return the regions this process has measured: orders and states of one model share most of them."""
    known = _forms_by_alignment(alignment)
    known.forget()
    return known


_forms_by_alignment = lru_cache(2)(KnownForms)
