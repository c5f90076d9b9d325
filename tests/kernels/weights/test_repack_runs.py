"""Weights repacked along runs: every element has one place, and starts undo zero points and complements."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from passfit.kernels.weights.repack_runs import RepackRuns

SHAPES = {"filters first": ((16, 32, 3), 0, 1), "filters last": ((3, 48, 12), 2, 1)}


@pytest.mark.parametrize("name", SHAPES)
def test_every_element_has_a_place_of_its_own(name):
    shape, dimension, channels = SHAPES[name]
    array = np.random.default_rng(0).integers(-128, 128, shape).astype(np.int8)
    found = RepackRuns(1, dimension, 4, channels=channels, extents=shape)
    block, place = (np.broadcast_to(each, array.shape) for each in found.index_map(*np.indices(array.shape)))
    packed = found.apply(array)
    assert packed.shape == found.shape(array.shape)
    np.testing.assert_array_equal(packed[block, place], array)
    assert len(set(zip(block.ravel(), place.ravel()))) == array.size and place.max() < found.starts


@given(st.integers(-128, 127), st.integers(0, 9))
def test_with_starts_sums_are_of_values_less_their_zero_point(zero, seed):
    random = np.random.default_rng(seed)
    weight, x = (random.integers(-128, 128, shape).astype(np.int64) for shape in ((8, 32), (32,)))
    packed = RepackRuns(0, 0, 8, channels=1, zero=zero, extents=(8, 32)).apply(weight.astype(np.int8))
    second = np.arange(32) % 16 >= 8
    multiplied = (weight[:, ~second] * x[~second]).sum(1) - (weight[:, second] * ~x[second]).sum(1)
    np.testing.assert_array_equal(packed[0, -32:].view("<i4") + multiplied, (weight * (x - zero)).sum(1))
