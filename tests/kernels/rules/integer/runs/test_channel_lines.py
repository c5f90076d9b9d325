"""Depthwise sums by vectors of four channels equal the exact arithmetic: any window, padding, stride and number of channels."""

import pytest

pytest.importorskip("tvm")

from hypothesis import given, settings
from hypothesis import strategies as st

from passfit.kernels.rules.integer.rows import channel_lines
from passfit.targets import get_target

from .....profiles import examples
from ..channels import PROCESSORS, assert_exact, fit_pads, row_of
from ..test_channel_taps import depthwise

pytestmark = pytest.mark.tvm
MACHINE = get_target("mps3-an547").machine


def scheduled(kernel, machine=MACHINE):
    return list(channel_lines(kernel, frozenset(), machine))


@settings(max_examples=examples(12))
@given(
    st.sampled_from([4, 5, 8, 16, 17, 40]), st.tuples(st.integers(3, 9), st.integers(3, 20)), st.tuples(st.integers(1, 5), st.integers(1, 5)),
    st.tuples(st.integers(1, 2), st.integers(1, 3)), st.tuples(st.integers(1, 2), st.integers(1, 2)), st.tuples(*[st.integers(0, 2)] * 4),
    st.sampled_from([(-128, "int8"), (0, "int8"), (3, "int8"), (0, "uint8"), (131, "uint8")]), st.integers(0, 9),
)  # fmt: skip
def test_windows_are_exact(channels, size, taps, strides, dilations, pads, zero, seed):
    pads = fit_pads(size, taps, dilations, pads)
    if taps == (1, 1) or pads is None:
        return
    kernel = depthwise(
        channels,
        size,
        taps,
        strides=strides,
        dilations=dilations,
        pads=pads,
        zero=zero[0],
        dtype=zero[1],
        last=(0, 1, 4),
    )
    if found := scheduled(kernel):
        assert_exact(kernel, found, seed, processors=PROCESSORS[:1])


@pytest.mark.parametrize("width, stride, pad", [(5, 1, 1), (13, 1, 1), (14, 2, 1), (7, 2, 0), (60, 1, 0), (60, 1, 1)])
def test_rows_at_a_time_are_exact(width, stride, pad):
    kernel = row_of(
        depthwise(24, (7, width), (3, 3), strides=(stride, stride), pads=(pad,) * 4, zero=-7, last=(0, 1, 4))
    )
    assert_exact(kernel, scheduled(kernel), rows=(0, 1, (7 + 2 * pad - 3) // stride), processors=PROCESSORS[:1])


def test_only_cores_with_mve_have_them():
    kernel = depthwise(16, (9, 9), (3, 3), pads=(1, 1, 1, 1), last=(0, 1, 4))
    assert scheduled(kernel)
    for name in ("x86-64", "rpi5", "mps2-an386", "stm32u585", "rv32-virt"):
        assert scheduled(kernel, get_target(name).machine) == [], name
