"""Check how many rows, or channels, regions take at a time where each tick reads weights again."""

import pytest

from passfit.memory.streaming.group_rows import NEAR, SLOW, row_groups
from passfit.memory.streaming.partition import best_partition
from passfit.program import Buffer, Follows, Port, Program, Rows, Splits, Step, Tensor, Weight

#: lines of the picture, and columns
_LINES, _COLUMNS = 13, 13


def one_by_one(extent: int, axis: int) -> Follows:
    return Follows(axis, extent, tuple(range(extent)), tuple(range(1, extent + 1)))


def classifier(taken: int, made: int, size: int = 1) -> tuple[Program, dict[str, Splits]]:
    """Build a convolution of `taken` to `made` channels, 1×1 or of more lines, and the means of its planes.

    The step before it takes nearly as many bytes as its whole result.
    """
    plane, weight = _LINES * _COLUMNS, made * taken * size
    counts = ((made - 1) * plane, taken * plane, made * plane, made)
    shapes = ((counts[0],), (1, taken, _LINES, _COLUMNS), (1, made, _LINES, _COLUMNS), (1, made))
    program = Program(
        name="classifier",
        steps=(Step("before", (0,), (1,)), Step("convolution", (1, 4), (2,)), Step("mean", (2,), (3,))),
        tensors=(*(Tensor(shape, "float32", buffer=n) for n, shape in enumerate(shapes)), Tensor((made, taken, size), "float32", weight=0)),
        buffers=tuple(Buffer(f"b{n}", 4 * count) for n, count in enumerate(counts)),
        weights=(Weight("w", 4 * weight, ""),),
        inputs=(Port("x", 0),),
        outputs=(Port("y", 3),),
    )  # fmt: skip
    reach = size // 2
    lines = Follows(
        2, _LINES, tuple(row - reach for row in range(_LINES)), tuple(row + reach + 1 for row in range(_LINES))
    )
    convolution = Splits(
        (Rows(1, made, ((1, one_by_one(made, 0)),)), Rows(2, _LINES, ((0, lines),))), (), work=weight * plane,
    )  # fmt: skip
    mean = Splits((Rows(1, made, ((0, one_by_one(made, 1)),)),), ((0, 2),), work=made * plane)
    return program, {"before": Splits((), (), 1), "convolution": convolution, "mean": mean}


def test_weights_beyond_a_near_cache_are_read_once_by_channels():
    (by_channels,) = best_partition(*classifier(512, 1000)).regions
    assert (by_channels.axis, by_channels.group) == (1, 50)


def test_weights_in_a_near_cache_are_read_again_by_rows():
    (by_rows,) = best_partition(*classifier(16, 250)).regions
    assert NEAR > 16 * 250 * 4 and by_rows.axis == 2


def test_windows_are_never_taken_by_channels():
    (by_rows,) = best_partition(*classifier(512, 1000, size=3)).regions
    assert by_rows.axis == 2


@pytest.mark.parametrize("extents", [[13, 13], [111, 55, 55], [1000]])
def test_groups_are_larger_the_more_each_reads_again(extents):
    best = [row_groups(extents, [again] * len(extents))[0] for again in (0, 2 * SLOW, 10**6)]
    fewest = [sum(-(-extent // group) for extent in extents) for group in best]
    assert fewest == sorted(fewest, reverse=True)
    assert row_groups(extents) == row_groups(extents, [0] * len(extents))
