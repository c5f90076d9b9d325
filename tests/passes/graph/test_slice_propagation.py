"""A part of a reshaped tensor is the reshaped part of the tensor, or is refused."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("tvm")

from passfit.passes.graph.rules.layout.reshaped_ranges import common_factors, ranges_before_reshape
from passfit.passes.graph.rules.layout.slices import Range, part_shape

pytestmark = pytest.mark.tvm

_SHAPES = st.lists(st.sampled_from([1, 2, 2, 3, 4]), min_size=1, max_size=4)


def cut(array: np.ndarray, ranges: tuple[Range, ...]) -> np.ndarray:
    at = [slice(None)] * array.ndim
    for each in ranges:
        at[each.axis] = slice(each.begin, each.end)
    return array[tuple(at)].reshape(part_shape(array.shape, ranges))


@st.composite
def reshapes(draw: st.DrawFn) -> tuple[list[int], list[int], tuple[Range, ...]]:
    """Join some neighbours of a shape's axes, part others: the shapes before and after, and ranges after."""
    common = draw(_SHAPES)
    before, after = (_joined(draw, common) for _ in range(2))
    ranges = []
    for axis in draw(st.sets(st.integers(0, len(after) - 1), min_size=1, max_size=2)):
        start = draw(st.integers(0, after[axis] - 1))
        count = draw(st.integers(1, after[axis] - start))
        ranges.append(Range(axis, start, start + count, drop=count == 1 and draw(st.booleans())))
    return before, after, tuple(ranges)


def _joined(draw: st.DrawFn, shape: list[int]) -> list[int]:
    joined = [shape[0]]
    for extent in shape[1:]:
        if draw(st.booleans()):
            joined[-1] *= extent
        else:
            joined.append(extent)
    return joined


@given(reshapes())
def test_what_is_read_before_a_reshape_is_what_is_wanted_after(case):
    before, after, ranges = case
    array = np.arange(math.prod(before)).reshape(before)
    wanted = cut(array.reshape(after), ranges)
    found = ranges_before_reshape(before, after, ranges)
    if found is None:
        first, *_, last = [*wanted.ravel(), wanted.ravel()[-1]]
        boxes = [cut(array, box).ravel() for box in _boxes(before)]
        assert last - first + 1 != wanted.size or not any(np.array_equal(box, wanted.ravel()) for box in boxes)
        return
    np.testing.assert_array_equal(cut(array, found).ravel(), wanted.ravel())


def _boxes(shape: list[int]):
    """Yield all ranges of a shape."""
    if not shape:
        yield ()
        return
    for rest in _boxes(shape[:-1]):
        for start in range(shape[-1]):
            for count in range(1, shape[-1] - start + 1):
                yield (*rest, Range(len(shape) - 1, start, start + count))


@pytest.mark.parametrize(
    "before, after, groups",
    [
        ((1, 5, 8), (1, 5, 2, 4), [([0], [0]), ([1], [1]), ([2], [2, 3])]),
        ((6, 4), (3, 8), [([0, 1], [0, 1])]),
        ((5, 2, 4), (5, 8), [([0], [0]), ([1, 2], [1])]),
        ((2, 3), (2, 3, 1), [([0], [0]), ([1], [1]), ([], [2])]),
    ],
)
def test_axes_go_together_where_a_reshape_mixes_them(before, after, groups):
    assert common_factors(before, after) == groups
