"""Weights repacked by units: every element has one place, and the grouping of each unit fits into int16."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from passfit.kernels.weights.repack_groups import RepackGroups, groupings

SHAPES = {
    "whole windows": ((8, 32, 3, 3), (2, 3), 1),
    "lines": ((8, 64, 5, 4), (3,), 2),
    "channels alone": ((4, 96, 1, 1), (), 3),
}


def groups_of(shape, unrolled, runs, zero=0):
    order = f"r k/{16 * runs} f u k%{16 * runs}/16 k%16"
    return RepackGroups(1, 0, 4, order=order, run=(1,), extents=shape, group=16 * runs, zero=zero, unrolled=unrolled)


@pytest.mark.parametrize("name", SHAPES)
def test_every_element_has_a_place_of_its_own(name):
    shape, unrolled, runs = SHAPES[name]
    array = np.random.default_rng(0).integers(-128, 128, shape).astype(np.int8)
    found = groups_of(shape, unrolled, runs)
    block, place = (np.broadcast_to(each, array.shape) for each in found.index_map(*np.indices(array.shape)))
    packed = found.apply(array)
    assert packed.shape == found.shape(array.shape)
    np.testing.assert_array_equal(packed[block, place], array)
    assert len(set(zip(block.ravel(), place.ravel()))) == array.size and place.max() < found.starts


@given(st.integers(1, 20))
def test_every_grouping_holds_each_half_once_and_the_last_each_alone(halves):
    found = groupings(halves)
    assert all(sorted(half for group in groups for half in group) == list(range(halves)) for groups in found)
    assert [len(groups) for groups in found] == sorted({len(groups) for groups in found}) and len(found[-1]) == halves


@given(st.integers(1, 128), st.booleans(), st.integers(0, 9))
def test_groups_fit_into_int16_for_any_values_and_no_better_grouping_does(most, extreme, seed):
    random = np.random.default_rng(seed)
    weight = random.integers(-most, min(most, 127) + 1, (4, 32, 3, 3)).astype(np.int8)
    if extreme:
        weight[0] = -128
    repack = groups_of(weight.shape, (2, 3), 1, zero=3)
    (packed,) = repack.apply(weight)
    units = packed[: repack.starts].reshape(-1, 18, 8).astype(int)
    np.testing.assert_array_equal(
        packed[repack.starts : repack.numbers].view("<i4"), -3 * weight.astype(int).sum((1, 2, 3))
    )

    def fits(unit, groups):
        ends = [np.where(unit < 0, one * unit, other * unit) for one, other in ((-128, 127), (127, -128))]
        sums = [end[list(group)].sum(0) for group in groups for end in ends]
        return all(np.all(each == each.astype(np.int16)) for each in sums)

    for unit, number in zip(units, packed[repack.numbers :], strict=True):
        assert [fits(unit, groups) for groups in groupings(18)].index(True) == number
