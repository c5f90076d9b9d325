"""Bytes brought into a cache by loops, against counts by hand and bounds that hold for all."""

import math

from hypothesis import given
from hypothesis import strategies as st

from passfit.tir.counts.cache_traffic import CacheTraffic, StatementNest, StridedAccess

_LINE = 64


def _nest(
    extents: tuple[int, ...], accesses: list[StridedAccess], loops: str = "abcdefgh", share: float = 1.0
) -> StatementNest:
    return StatementNest(tuple(loops[: len(extents)]), extents, tuple(accesses), share)


def brought_in(extents: tuple[int, ...], accesses: list[StridedAccess], cache: int) -> float:
    nest = _nest(extents, accesses)
    return CacheTraffic([nest]).brought_in(nest, cache)


def test_weights_larger_than_the_cache_come_again_for_each_row_and_what_fits_stays():
    rows, filters, taps = 76, 257, 1024
    x, w = StridedAccess((taps, 0, 1), 4), StridedAccess((0, taps, 1), 4)
    weights, one = filters * taps * 4, taps * 4
    assert brought_in((rows, filters, taps), [x, w], 32 << 10) == rows * (weights + one)
    assert brought_in((rows, filters, taps), [x, w], 2 << 20) == weights + rows * one


def test_windows_that_overlap_are_brought_in_once():
    assert brought_in((64, 3), [StridedAccess((1, 1), 4)], 1 << 15) == (64 + 2) * 4


def test_single_elements_far_apart_bring_whole_lines():
    assert brought_in((100,), [StridedAccess((1000,), 4)], 1 << 15) == 100 * _LINE
    assert brought_in((100,), [StridedAccess((None,), 4)], 1 << 15) >= 100 * 4


_LOOPS = st.lists(
    st.tuples(st.integers(1, 9), st.sampled_from([0, 1, 3, 16, 100]), st.sampled_from([0, 1, 9, 64])), max_size=4
)


@given(_LOOPS, st.integers(0, 1 << 14), st.integers(0, 1 << 14))
def test_a_larger_cache_takes_no_more_and_no_access_more_than_a_line(loops, cache, more):
    extents = tuple(extent for extent, *_ in loops)
    accesses = [StridedAccess(tuple(loop[n] for loop in loops), 4) for n in (1, 2)]
    found = brought_in(extents, accesses, cache)
    assert brought_in(extents, accesses, cache + more) <= found <= 2 * math.prod(extents) * _LINE
    assert found >= brought_in(extents, accesses, 1 << 40) > 0


def _turns(count: int, weights: int) -> list[StatementNest]:
    """Return two products of rows by `weights` floats each, in one loop of turns."""
    products = [("tab", "w"), ("tcd", "u")]
    return [
        _nest(
            (count, weights // 16, 16),
            [StridedAccess((16, 0, 1), 4, "x" + name), StridedAccess((0, 16, 1), 4, name)],
            loops,
        )
        for loops, name in products
    ]


def test_statements_of_a_loop_share_the_cache():
    count, weights = 56, 6144  # 24 KiB each, 48 KiB both
    nests = _turns(count, weights)
    both, alone = CacheTraffic(nests), CacheTraffic(nests[:1])
    row = count * 64
    assert alone.brought_in(nests[0], 32 << 10) == weights * 4 + row
    assert both.brought_in(nests[0], 32 << 10) == count * weights * 4 + row
    assert both.brought_in(nests[0], 64 << 10) == weights * 4 + row


def test_what_is_kept_is_brought_in_once():
    nests = _turns(56, 6144)
    traffic = CacheTraffic(nests)
    assert traffic.brought_again(nests[0], 1 << 20) == 0
    assert traffic.brought_again(nests[0], 32 << 10) == 55 * 6144 * 4


def test_a_statement_that_runs_rarely_takes_little_of_the_cache():
    nests = _turns(56, 6144)
    rare = nests[1]._replace(share=1 / 56)
    traffic = CacheTraffic([nests[0], rare])
    assert traffic.brought_in(nests[0], 32 << 10) == 6144 * 4 + 56 * 64
    assert traffic.brought_in(rare, 32 << 10) == 6144 * 4 + 64


def test_statements_that_run_rarely_push_out_each_other():
    rare = [nest._replace(share=1 / 8) for nest in _turns(56, 6144)]
    assert CacheTraffic(rare).brought_in(rare[0], 32 << 10) == 56 / 8 * 6144 * 4 + 56 / 8 * 64


@given(_LOOPS, _LOOPS, st.integers(0, 1 << 14), st.integers(0, 1 << 14))
def test_beside_other_statements_no_fewer_bytes_are_brought_in_and_fewer_by_a_larger_cache(loops, others, cache, more):
    nest, other = (
        _nest(
            (5, *(loop[0] for loop in each)),
            [StridedAccess((0, *(loop[n] for loop in each)), 4, n) for n in (1, 2)],
            "t" + names,
        )
        for each, names in ((loops, "abcd"), (others, "efgh"))
    )
    alone, both = (
        CacheTraffic([nest]),
        CacheTraffic([nest, other._replace(accesses=tuple(each._replace(source="o") for each in other.accesses))]),
    )
    assert both.brought_in(nest, cache) >= alone.brought_in(nest, cache)
    assert both.brought_in(nest, cache + more) <= both.brought_in(nest, cache)
