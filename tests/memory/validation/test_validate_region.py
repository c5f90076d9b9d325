"""A streaming region that computes wrong is refused before it is built."""

from dataclasses import replace

import pytest

from passfit.errors import PlanError
from passfit.memory.streaming.in_place import IN_PLACE
from passfit.memory.streaming.region import Region, region
from passfit.memory.validation.validate_region import validate_region

from ..rowwise import RowBuilder


def case(in_place=0):
    """A window of three rows, one that halves them and one of two rows; or the first alone, in place."""
    builder = RowBuilder()
    last = builder.tensor(12, 12)
    first = {"size": 3, "pad": 1}
    for options in (first,) if in_place else (first, first | {"stride": 2}, {"size": 2}):
        last = builder.window(last, **options)
    program, splits = builder.program()
    found = region(program, splits, 0, len(program.steps) - 1, 0, in_place=in_place)
    assert found is not None
    validate_region(program, splits, found)
    return program, splits, found


def changed(found: Region, number: int, **fields: object) -> Region:
    stages = list(found.stages)
    stages[number] = replace(stages[number], **fields)
    return replace(found, stages=tuple(stages))


@pytest.mark.parametrize(
    "number, fields, said",
    [
        (0, {"axis": 1}, "reads 12 rows along axis 0 of tensor 1, of which the region holds 12 along axis 1"),
        (1, {"axis": 1}, "has no 6 rows along axis 1"),
        (0, {"extent": 11}, "has no 11 rows along axis 0"),
        (0, {"held": 2}, "reads row"),
        (1, {"held": 1}, "reads row"),
        (0, {"offset": -1}, "reads row"),
        (2, {"offset": 30}, "reads row"),
        (1, {"period": 1}, "reads row"),
    ],
)
def test_a_stage_that_does_not_find_its_rows_is_named(number, fields, said):
    program, splits, found = case()
    with pytest.raises(PlanError, match=f"'k[012]' .*{said}"):
        validate_region(program, splits, changed(found, number, **fields))


def test_a_result_stored_too_early_is_refused():
    program, splits, found = case(IN_PLACE)
    assert found.replacement is not None and found.replacement.held
    early = replace(found, replacement=replace(found.replacement, lag=found.replacement.lag - 1))
    with pytest.raises(PlanError, match="after it is overwritten|no longer waits"):
        validate_region(program, splits, early)


def test_rows_in_a_slot_are_read_in_the_tick_that_computes_them():
    builder = RowBuilder()
    last = builder.window(builder.tensor(12, 12), size=3, pad=1)
    for options in ({"size": 3, "pad": 1, "stride": 2}, {"size": 1}):
        last = builder.window(last, **options)
    program, splits = builder.program()
    found = region(program, splits, 0, 2, 0)
    assert found is not None and found.stages[1].slot is not None and found.stages[2].period == 2
    validate_region(program, splits, found)
    with pytest.raises(PlanError, match="'k2' reads row 0"):
        validate_region(program, splits, changed(found, 2, offset=found.stages[2].offset + 1))
