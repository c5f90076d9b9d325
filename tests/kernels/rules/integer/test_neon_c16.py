"""Sums along runs of sixteen channels equal the exact arithmetic: any window, padding, stride, dilation and zero point."""

from dataclasses import replace

import pytest

pytest.importorskip("tvm")

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from passfit.kernels.rules.integer.rows import neon_c16
from passfit.targets import get_target

from ....profiles import examples
from .channels import PROCESSORS, assert_exact, conv, row_of

pytestmark = pytest.mark.tvm
MACHINES = [get_target(name).machine for name in ("rpi4", "beaglebone")]


def scheduled(kernel, machine=MACHINES[0]):
    return list(neon_c16(kernel, frozenset({1}), machine))


@settings(max_examples=examples(12))
@given(
    st.sampled_from([16, 32, 48]), st.sampled_from([4, 12, 16]), st.tuples(st.integers(2, 7), st.integers(2, 20)),
    st.tuples(st.integers(1, 3), st.integers(1, 5)), st.tuples(st.integers(1, 2), st.integers(1, 3)),
    st.tuples(st.integers(1, 2), st.integers(1, 2)), st.tuples(*[st.integers(0, 2)] * 4), st.sampled_from([(0, 4), (0,)]),
    st.sampled_from([(-128, "int8"), (0, "int8"), (3, "int8"), (0, "uint8"), (131, "uint8")]), st.sampled_from(MACHINES), st.integers(0, 9),
)  # fmt: skip
def test_convolutions_are_exact(channels, filters, size, taps, strides, dilations, pads, last, zero, machine, seed):
    reach = [(tap - 1) * dilation + 1 for tap, dilation in zip(taps, dilations)]
    pads = tuple(min(pad, extent - 1) for pad, extent in zip(pads, reach * 2))
    places = [extent + pads[n] + pads[n + 2] - reach[n] for n, extent in enumerate(size)]
    assume(min(places) >= 0)
    kernel = conv(
        channels,
        filters,
        size,
        taps,
        strides=strides,
        dilations=dilations,
        pads=pads,
        zero=zero[0],
        dtype=zero[1],
        last=last,
    )
    found = scheduled(kernel, machine)
    if found or (machine is MACHINES[0] and places[1] >= 9):
        assert_exact(kernel, found, seed, processors=[PROCESSORS[seed % len(PROCESSORS)]])


@settings(max_examples=examples(3))
@given(st.sampled_from([16, 32]), st.integers(3, 30), st.integers(1, 2), st.integers(0, 1), st.sampled_from(MACHINES))
def test_rows_at_a_time_are_exact(channels, width, stride, pad, machine):
    kernel = row_of(conv(channels, 16, (7, width), (3, 3), strides=(stride, stride), pads=(pad,) * 4, zero=-7))
    last = (7 + 2 * pad - 3) // stride
    found = list(neon_c16(kernel, frozenset({2}), machine))
    assert_exact(kernel, found, rows=(0, 1, last), processors=PROCESSORS[:1])


@pytest.mark.parametrize("machine", MACHINES, ids=["rpi4", "beaglebone"])
@pytest.mark.parametrize("size, last", [((1, 1), ()), ((1, 1), (0, 4)), ((1, 7), (0, 4)), ((5, 1), (0,))])
def test_channels_alone_are_exact(size, last, machine):
    kernel = conv(48, 24, size, (1, 1), last=last, zero=-9)
    assert_exact(kernel, scheduled(kernel, machine), processors=PROCESSORS[-1:])


@pytest.mark.parametrize("taps, channels", [((3, 1), 16), ((1, 3), 16), ((1, 1), 48)])
def test_few_products_are_exact(taps, channels):
    kernel = conv(channels, 4, (2, 20), taps, pads=(1, 0, 1, 1), zero=5)
    assert_exact(kernel, scheduled(kernel), processors=PROCESSORS[-1:])


@pytest.mark.parametrize(
    "kernel",
    [
        conv(32, 16, (9, 9), (3, 3), last=()), conv(24, 16, (9, 9), (3, 3)),
        conv(16, 10, (9, 9), (3, 3)), conv(16, 16, (3, 20), (1, 9)),
    ],
    ids=["planes", "no runs", "odd filters", "many taps"],
)  # fmt: skip
def test_other_forms_are_left_to_other_rules(kernel):
    assert scheduled(kernel) == []


def test_machines_of_another_kind_have_none():
    kernel = conv(32, 16, (9, 9), (3, 3), pads=(1, 1, 1, 1))
    assert scheduled(kernel)
    assert scheduled(kernel, replace(MACHINES[0], compact=True)) == []
    assert scheduled(kernel, get_target("visionfive2").machine) == []
    assert scheduled(kernel, get_target("rpi5").machine) == []
