"""Sums in int16 by groups equal the exact arithmetic: any window, padding, stride, zero point and weights."""

from dataclasses import replace

import pytest

pytest.importorskip("tvm")

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from passfit.kernels.rules.integer.rows import neon_int16_accumulate
from passfit.targets import get_target
from passfit.tir.workspace import workspace_bytes

from ....profiles import examples
from .channels import PROCESSORS, assert_exact, conv, row_of

pytestmark = pytest.mark.tvm
MACHINE = get_target("rpi4").machine


def scheduled(kernel, weight=1, machine=MACHINE):
    return list(neon_int16_accumulate(kernel, frozenset({weight}), machine))


@settings(max_examples=examples(2))
@given(
    st.sampled_from([16, 32, 48]), st.sampled_from([4, 8, 24]), st.tuples(st.integers(3, 6), st.integers(6, 19)),
    st.sampled_from([(3, 3), (3, 3), (2, 4), (1, 7), (5, 5)]), st.integers(1, 2), st.integers(0, 1), st.sampled_from([(0, 4), (0,)]),
    st.sampled_from([(-128, "int8"), (3, "int8"), (131, "uint8")]), st.integers(0, 9),
)  # fmt: skip
def test_convolutions_are_exact(channels, filters, size, taps, stride, pad, last, zero, seed):
    assume(all(extent + 2 * pad >= tap for extent, tap in zip(size, taps)))
    kernel = conv(
        channels, filters, size, taps, strides=(stride, stride), pads=(pad,) * 4, zero=zero[0], dtype=zero[1], last=last
    )
    found = scheduled(kernel)
    if found:
        assert_exact(kernel, found, seed, processors=PROCESSORS[:1])


@pytest.mark.parametrize("channels, filters, stride, width", [(16, 8, 1, 9), (16, 8, 2, 15), (32, 8, 2, 16)])
def test_windows_are_exact(channels, filters, stride, width):
    kernel = conv(channels, filters, (3, width), (3, 3), strides=(stride, stride), pads=(1, 1, 1, 1), zero=-128)
    assert_exact(kernel, scheduled(kernel), processors=PROCESSORS[-1:])


def test_results_with_planes_are_exact():
    kernel = conv(16, 8, (3, 9), (3, 3), pads=(1, 1, 1, 1), last=(0,))
    assert_exact(kernel, scheduled(kernel), processors=PROCESSORS[:1])


@pytest.mark.parametrize("row", [0, 4])
def test_rows_at_a_time_are_exact(row):
    kernel = row_of(conv(16, 8, (5, 8), (3, 3), pads=(1, 1, 1, 1), zero=-7))
    assert_exact(kernel, scheduled(kernel, 2), rows=(row,), processors=PROCESSORS[:1])


def test_buffers_fit_into_registers():
    for channels, filters, stride in ((16, 16, 1), (64, 64, 1), (16, 32, 2)):
        (found,) = scheduled(conv(channels, filters, (32, 32), (3, 3), strides=(stride, stride), pads=(1, 1, 1, 1)))
        assert workspace_bytes(found.kernel) <= found.workspace <= MACHINE.register_bytes


@pytest.mark.parametrize(
    "kernel",
    [
        conv(32, 16, (9, 9), (3, 3), last=()), conv(24, 16, (9, 9), (3, 3)), conv(16, 10, (9, 9), (3, 3)),
        conv(64, 64, (5, 25), (1, 1)), conv(32, 16, (3, 3), (3, 3), pads=(1, 1, 1, 1)),
    ],
    ids=["planes", "no runs", "odd filters", "few products", "few places"],
)  # fmt: skip
def test_other_forms_are_left_to_other_rules(kernel):
    assert scheduled(kernel) == []


def test_machines_of_another_kind_have_none():
    kernel = conv(32, 16, (9, 9), (3, 3), pads=(1, 1, 1, 1))
    assert scheduled(kernel)
    assert scheduled(kernel, machine=replace(MACHINE, compact=True)) == []
    for name in ("beaglebone", "visionfive2", "rpi5", "x86-64"):
        assert scheduled(kernel, machine=get_target(name).machine) == []
