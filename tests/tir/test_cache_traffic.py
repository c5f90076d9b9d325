"""Bytes brought into a cache by loops, against counts by hand and bounds that hold for all."""

import math

from hypothesis import given
from hypothesis import strategies as st

from passfit.tir.counts.cache_traffic import Access, brought_in

_LINE = 64


def test_weights_larger_than_the_cache_come_again_for_each_row_and_what_fits_stays():
    rows, filters, taps = 76, 257, 1024
    x, w = Access((taps, 0, 1), 4), Access((0, taps, 1), 4)
    weights, one = filters * taps * 4, taps * 4
    assert brought_in((rows, filters, taps), [x, w], 32 << 10) == rows * (weights + one)
    assert brought_in((rows, filters, taps), [x, w], 2 << 20) == weights + rows * one


def test_windows_that_overlap_are_brought_in_once():
    assert brought_in((64, 3), [Access((1, 1), 4)], 1 << 15) == (64 + 2) * 4


def test_single_elements_far_apart_bring_whole_lines():
    assert brought_in((100,), [Access((1000,), 4)], 1 << 15) == 100 * _LINE
    assert brought_in((100,), [Access((None,), 4)], 1 << 15) >= 100 * 4


_LOOPS = st.lists(st.tuples(st.integers(1, 9), st.sampled_from([0, 1, 3, 16, 100]), st.sampled_from([0, 1, 9, 64])), max_size=4)


@given(_LOOPS, st.integers(0, 1 << 14), st.integers(0, 1 << 14))
def test_a_larger_cache_takes_no_more_and_no_access_more_than_a_line(loops, cache, more):
    extents = [extent for extent, *_ in loops]
    accesses = [Access(tuple(loop[n] for loop in loops), 4) for n in (1, 2)]
    found = brought_in(extents, accesses, cache)
    assert brought_in(extents, accesses, cache + more) <= found <= 2 * math.prod(extents) * _LINE
    assert found >= brought_in(extents, accesses, 1 << 40) > 0
