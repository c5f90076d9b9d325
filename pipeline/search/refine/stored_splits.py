"""Keep plans of splits in the store, by the form of their program: most targets share them.

"partition 1f3a… 64 inf": [[[0, 4, 2, 1, 5120, false]], 8192, 12, true]        regions, bytes, step reached, complete
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import astuple
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

    def made() -> tuple[object, ...] | None:
        found = partition_within(most, program, splits, alignment, _forms(alignment))
        return None if found is None else astuple(found)

    found = shared_store().get_or_make(f"partition {form} {alignment} {most}", made)
    return None if found is None else _partition(found)


def stored_repeats(
    form: str, program: Program, splits: Mapping[str, Splits], alignment: int, work: int, steps: int
) -> RepeatResult:
    """Return the `best_repeats` of the program of a form."""

    def made() -> list[object]:
        found = best_repeats(program, splits, work, alignment, steps, _forms(alignment))
        return [[astuple(each) for each in found.repeats], astuple(found.path), found.refused, found.tried]

    repeats, path, refused, tried = shared_store().get_or_make(f"repeats {form} {alignment} {work} {steps}", made)
    found = tuple(Repeat(tuple(numbers), before, move) for numbers, before, move in repeats)
    return RepeatResult(reduce(repeat_steps, found, program), found, _partition(path), refused, tried)


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
    found = shared_store().get_or_make(f"fewest {form} {made!r}", lambda: [astuple(each) for each in make()])
    return tuple(StreamedSteps(*each) for each in found)


def _forms(alignment: int) -> KnownForms:
    """Return the regions this process has measured: orders and states of one model share most of them."""
    known = _forms_by_alignment(alignment)
    known.forget()
    return known


_forms_by_alignment = lru_cache(2)(KnownForms)


def _partition(line: tuple) -> Partition:
    regions, nbytes, reached, complete = line
    return Partition(tuple(StreamedSteps(*each) for each in regions), nbytes, reached, complete)
