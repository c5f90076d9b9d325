"""Weights repacked for sums of four: every element has one place, and starts undo zero points and complements."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from passfit.kernels.weights.repack_quads import RepackQuads

SHAPES = {"filters first": ((16, 7, 3), 0, 1), "filters last": ((3, 32, 24), 2, 1)}


def repack(name, width, chunk=4, zero=0, dots=False):
    shape, dimension, inner = SHAPES[name]
    return RepackQuads(1, dimension, width, channels=inner, chunk=chunk, zero=zero, extents=shape, dots=dots)


@pytest.mark.parametrize("dots", [False, True], ids=["quads", "dots"])
@pytest.mark.parametrize("chunk", [4, 16])
@pytest.mark.parametrize("name", SHAPES)
def test_every_element_has_a_place_of_its_own(name, chunk, dots):
    array = np.random.default_rng(0).integers(-128, 128, SHAPES[name][0]).astype(np.int8)
    found = repack(name, 8, chunk, dots=dots)
    block, place = (np.broadcast_to(each, array.shape) for each in found.index_map(*np.indices(array.shape)))
    packed = found.apply(array)
    assert packed.shape == found.shape(array.shape)
    np.testing.assert_array_equal(packed[block, place], array)
    assert len(set(zip(block.ravel(), place.ravel()))) == array.size and place.max() < found.starts


@given(st.integers(-128, 127), st.sampled_from([4, 16]), st.integers(0, 9))
def test_with_starts_sums_are_of_values_less_their_zero_point(zero, chunk, seed):
    random = np.random.default_rng(seed)
    weight, x = (random.integers(-128, 128, shape).astype(np.int64) for shape in ((8, 32), (32,)))
    packed = RepackQuads(0, 0, 8, channels=1, chunk=chunk, zero=zero, extents=(8, 32)).apply(weight.astype(np.int8))
    starts = packed[0, -32:].view("<i4")
    second = np.arange(32) % chunk >= chunk // 2
    multiplied = (weight[:, ~second] * x[~second]).sum(1) - (weight[:, second] * ~x[second]).sum(1)
    np.testing.assert_array_equal(starts + multiplied, (weight * (x - zero)).sum(1))
