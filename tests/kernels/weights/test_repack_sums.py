"""Check weights repacked for sums: every element has one place, broken groups end with zeros, starts undo zero points."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from passfit.kernels.weights.repack_sums import RepackSums

#: shape, dimension of the filters, dimensions of a run
FORMS = {
    "channels": ((16, 6, 3, 3), 0, (1,)), "taps and channels": ((8, 3, 2, 3), 0, (3, 1)), "taps": ((8, 1, 10, 4), 0, (3,)),
    "filters last": ((5, 24), 1, (0,)), "filters in the middle": ((3, 16, 32), 1, (2,)),
}  # fmt: skip
#: order, group, half of values complemented
ORDERS = {
    "pairs": ("r k/2 f k%2", 2, 0), "fours": ("r k/4 f k%4", 4, 0), "fours, even and odd": ("r k/4 f k%2 k%4/2", 4, 0),
    "sixteens": ("r k/16 f k%16", 16, 0), "runs": ("r k/16 f k%16", 16, 16),
    "quads": ("r k/4 k%2/2 f/8 k%4/2 f%8 k%2", 4, 4), "dense quads": ("r k/16 k%8/2 f/8 k%16/8 f%8 k%2", 16, 16),
}  # fmt: skip


def repack(form, order, zero=None, width=8):
    (shape, dimension, run), (digits, group, halves) = FORMS[form], ORDERS[order]
    return RepackSums(1, dimension, width, order=digits, run=run, extents=shape, group=group, zero=zero, halves=halves)


def drawn(shape, seed=0):
    return np.random.default_rng(seed).integers(1, 128, shape).astype(np.int8)


@pytest.mark.parametrize("zero", [None, -128, 0, 200])
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("form", FORMS)
def test_every_element_has_a_place_of_its_own_before_the_starts(form, order, zero):
    found, array = repack(form, order, zero), drawn(FORMS[form][0])
    places = np.stack(
        [np.broadcast_to(each, array.shape).ravel() for each in found.index_map(*np.indices(array.shape))]
    )
    packed = found.apply(array)
    assert packed.shape == found.shape(array.shape) and packed.flags.c_contiguous
    np.testing.assert_array_equal(packed[tuple(places)], array.ravel())
    assert len(set(map(tuple, places.T))) == array.size
    block = packed.reshape(len(packed), -1)
    assert np.count_nonzero(block[:, : found.starts]) == array.size
    assert block.shape[1] == found.starts + (0 if zero is None else 4 * found.width)


@given(st.sampled_from(sorted(ORDERS)), st.integers(-128, 200), st.integers(0, 9))
def test_with_starts_sums_are_of_values_less_their_zero_point(order, zero, seed):
    random = np.random.default_rng(seed)
    weight, x = (random.integers(-128, 128, shape).astype(np.int64) for shape in ((8, 32), (32,)))
    digits, group, halves = ORDERS[order]
    found = RepackSums(0, 0, 8, order=digits, run=(1,), extents=(8, 32), group=group, zero=zero, halves=halves)
    starts = found.apply(weight.astype(np.int8)).reshape(-1)[found.starts :].view("<i4")
    second = np.arange(32) % halves >= halves // 2 if halves else np.zeros(32, bool)
    multiplied = (weight[:, ~second] * x[~second]).sum(1) - (weight[:, second] * ~x[second]).sum(1)
    np.testing.assert_array_equal(starts + multiplied, (weight * (x - zero)).sum(1))


def test_neighbours_of_a_run_are_side_by_side():
    array = np.arange(16 * 4, dtype=np.int8).reshape(16, 4)
    packed = RepackSums(0, 0, 8, order="r k/2 f k%2", run=(1,), extents=(16, 4), group=2).apply(array)
    np.testing.assert_array_equal(packed[1, 20:22], array[10, 2:])


@pytest.mark.parametrize("form", FORMS)
def test_even_and_odd_bytes_of_a_four_may_be_neighbours(form):
    array = drawn(FORMS[form][0])
    one, other = (repack(form, order, zero=3).apply(array) for order in ("fours", "fours, even and odd"))
    np.testing.assert_array_equal(other[:, :-32].reshape(-1, 4), one[:, :-32].reshape(-1, 4)[:, [0, 2, 1, 3]])
    np.testing.assert_array_equal(other[:, -32:], one[:, -32:])
