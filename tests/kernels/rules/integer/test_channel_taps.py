"""Depthwise sums by pairs of rows on cores without vectors equal the exact arithmetic: any window, padding, stride and layout."""

import pytest

pytest.importorskip("tvm")

from hypothesis import given, settings
from hypothesis import strategies as st

from passfit.kernels.rules.integer.rows import channel_taps
from passfit.targets import get_target

from ....profiles import examples
from .channels import assert_exact, conv, fit_pads, row_of

pytestmark = pytest.mark.tvm
MACHINE = get_target("mps2-an386").machine


def depthwise(channels, *given, **named):
    return conv(channels, channels, *given, groups=channels, **named)


def scheduled(kernel, machine=MACHINE):
    return list(channel_taps(kernel, frozenset(), machine))


@settings(max_examples=examples(12))
@given(
    st.sampled_from([2, 3, 8]), st.tuples(st.integers(3, 9), st.integers(3, 20)), st.tuples(st.integers(1, 5), st.integers(1, 4)),
    st.tuples(st.integers(1, 2), st.integers(1, 3)), st.tuples(st.integers(1, 2), st.integers(1, 2)), st.tuples(*[st.integers(0, 2)] * 4),
    st.sampled_from([(-128, "int8"), (0, "int8"), (3, "int8"), (0, "uint8"), (131, "uint8")]), st.sampled_from([(0, 4), ()]),
    st.integers(0, 9),
)  # fmt: skip
def test_windows_are_exact(channels, size, taps, strides, dilations, pads, zero, last, seed):
    pads = fit_pads(size, taps, dilations, pads)
    if taps == (1, 1) or pads is None:
        return
    kernel = depthwise(
        channels, size, taps, strides=strides, dilations=dilations, pads=pads, zero=zero[0], dtype=zero[1], last=last
    )
    if found := scheduled(kernel):
        assert_exact(kernel, found, seed)


@pytest.mark.parametrize("width, stride, pad", [(5, 1, 1), (13, 1, 1), (14, 2, 1), (7, 2, 0), (24, 1, 0)])
def test_rows_at_a_time_are_exact(width, stride, pad):
    kernel = row_of(depthwise(8, (7, width), (3, 3), strides=(stride, stride), pads=(pad,) * 4, zero=-7))
    assert_exact(kernel, scheduled(kernel), rows=(0, 1, (7 + 2 * pad - 3) // stride))


@pytest.mark.parametrize("last", [(0, 4), ()], ids=["channels last", "planes"])
def test_only_a_core_without_vectors_and_with_smlad_has_them(last):
    kernel = depthwise(16, (9, 9), (3, 3), pads=(1, 1, 1, 1), last=last)
    assert scheduled(kernel)
    for name in ("x86-64", "rpi5", "rp2040", "rv32-virt"):
        assert scheduled(kernel, get_target(name).machine) == [], name
