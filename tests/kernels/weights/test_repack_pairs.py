"""Weights repacked for sums of two and of four: every element has one place, a run of broken groups ends with zeros."""

import numpy as np
import pytest

from passfit.kernels.weights.repack_pairs import RepackPairs

#: shape, dimension of the filters, dimensions of a run
FORMS = {
    "channels": ((16, 6, 3, 3), 0, (1,)), "taps and channels": ((8, 3, 2, 3), 0, (3, 1)), "taps": ((8, 1, 10, 4), 0, (3,)),
    "filters last": ((5, 24), 1, (0,)),
}  # fmt: skip


@pytest.mark.parametrize("name", FORMS)
def test_every_element_has_a_place_of_its_own(name):
    shape, dimension, run = FORMS[name]
    array = np.random.default_rng(0).integers(1, 128, shape).astype(np.int8)
    found = RepackPairs(1, dimension, 8, run=run, extents=shape)
    places = np.stack([np.broadcast_to(each, shape).ravel() for each in found.index_map(*np.indices(shape))])
    packed = found.apply(array)
    assert packed.shape == found.shape(shape) and packed.flags.c_contiguous
    np.testing.assert_array_equal(packed[tuple(places)], array.ravel())
    assert len(set(map(tuple, places.T))) == array.size == np.count_nonzero(packed)


def test_neighbours_of_a_run_are_side_by_side():
    array = np.arange(16 * 4, dtype=np.int8).reshape(16, 4)
    packed = RepackPairs(0, 0, 8, run=(1,), extents=(16, 4)).apply(array)
    np.testing.assert_array_equal(packed[1, 1, 4:6], array[10, 2:])


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("zero", [-128, 0, 1, 200])
def test_fours_end_with_the_starts_of_their_sums(name, zero):
    shape, dimension, run = FORMS[name]
    array = np.random.default_rng(0).integers(1, 128, shape).astype(np.int8)
    found = RepackPairs(1, dimension, 8, run=run, extents=shape, group=4, zero=zero)
    places = np.stack([np.broadcast_to(each, shape).ravel() for each in found.index_map(*np.indices(shape))])
    packed = found.apply(array)
    assert packed.shape == found.shape(shape) and packed.flags.c_contiguous
    np.testing.assert_array_equal(packed[tuple(places)], array.ravel())
    assert len(set(map(tuple, places.T))) == array.size == np.count_nonzero(packed[:, :-1])
    sums = np.moveaxis(array, dimension, 0).reshape(shape[dimension], -1).sum(1, dtype=np.int32)
    np.testing.assert_array_equal(np.ascontiguousarray(packed[:, -1]).view("<i4").ravel(), -sums * zero)


@pytest.mark.parametrize("name", FORMS)
def test_even_and_odd_bytes_of_spread_fours_are_neighbours(name):
    shape, dimension, run = FORMS[name]
    array = np.random.default_rng(0).integers(1, 128, shape).astype(np.int8)
    plain, found = (
        RepackPairs(1, dimension, 4, run=run, extents=shape, group=4, zero=3, spread=spread) for spread in (False, True)
    )
    one, other = plain.apply(array), found.apply(array)
    split = one[:, :-1].reshape(-1, 4)
    np.testing.assert_array_equal(other[:, :-1].reshape(-1, 4), split[:, [0, 2, 1, 3]])
    np.testing.assert_array_equal(other[:, -1], one[:, -1])
    places = [np.broadcast_to(each, shape).ravel() for each in found.index_map(*np.indices(shape))]
    np.testing.assert_array_equal(other[tuple(places)], array.ravel())
