"""Depthwise sums with channels last equal the exact arithmetic: any window, padding, stride and number of channels."""

from dataclasses import replace

import pytest

pytest.importorskip("tvm")

from hypothesis import given, settings
from hypothesis import strategies as st

from passfit.kernels.rules.integer.rows import channel_windows
from passfit.targets import get_target

from ....profiles import examples
from .channels import MACHINES, assert_exact, conv, fit_pads, row_of

pytestmark = pytest.mark.tvm
PAIRS, WIDE = MACHINES
#: machines with pairs of rows and without
EITHER = [PAIRS, WIDE, get_target("rpi4").machine, get_target("beaglebone").machine]


def depthwise(channels, *given, **named):
    return conv(channels, channels, *given, groups=channels, **named)


def scheduled(kernel, machine=PAIRS):
    return list(channel_windows(kernel, frozenset(), machine))


@settings(max_examples=examples(15))
@given(
    st.sampled_from([4, 8, 9, 13, 16, 24]), st.tuples(st.integers(4, 9), st.integers(4, 40)),
    st.tuples(st.integers(1, 5), st.integers(1, 4)), st.tuples(st.integers(1, 2), st.integers(1, 3)),
    st.tuples(st.integers(1, 2), st.integers(1, 2)), st.tuples(*[st.integers(0, 2)] * 4),
    st.sampled_from([(-128, "int8"), (0, "int8"), (3, "int8"), (0, "uint8"), (131, "uint8")]), st.sampled_from(EITHER), st.integers(0, 9),
)  # fmt: skip
def test_windows_are_exact(channels, size, taps, strides, dilations, pads, zero, machine, seed):
    pads = fit_pads(size, taps, dilations, pads)
    if pads is None or taps == (1, 1) or channels < min(machine.lanes, 8):
        return
    kernel = depthwise(
        channels, size, taps, strides=strides, dilations=dilations, pads=pads, zero=zero[0], dtype=zero[1]
    )
    found = scheduled(kernel, machine)
    if found or size[1] > 8:
        assert_exact(kernel, found, seed)


@settings(max_examples=examples(4))
@given(st.sampled_from([8, 11, 64]), st.integers(3, 30), st.integers(1, 2), st.integers(0, 1), st.sampled_from(EITHER))
def test_rows_at_a_time_are_exact(channels, width, stride, pad, machine):
    kernel = row_of(depthwise(channels, (7, width), (3, 3), strides=(stride, stride), pads=(pad,) * 4, zero=-7))
    last = (7 + 2 * pad - 3) // stride
    assert_exact(kernel, scheduled(kernel, machine), rows=(0, 1, last))


@pytest.mark.parametrize(
    "kernel",
    [
        depthwise(8, (9, 9), (3, 3), last=()), depthwise(3, (9, 9), (3, 3)), depthwise(16, (20, 20), (9, 9)),
        depthwise(8, (9, 9), (1, 1)), conv(8, 16, (9, 9), (3, 3)), conv(8, 16, (9, 9), (3, 3), groups=8),
    ],
    ids=["planes", "few channels", "many taps", "one tap", "dense", "several filters a channel"],
)  # fmt: skip
def test_other_forms_are_left_to_other_rules(kernel):
    assert scheduled(kernel) == []


def test_a_machine_without_vectors_or_for_short_code_has_none():
    kernel = depthwise(16, (9, 9), (3, 3), pads=(1, 1, 1, 1))
    assert scheduled(kernel)
    assert scheduled(kernel, replace(PAIRS, compact=True)) == []
    assert scheduled(kernel, get_target("visionfive2").machine) == []
