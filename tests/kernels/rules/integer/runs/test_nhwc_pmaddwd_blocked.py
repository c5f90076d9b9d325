"""Integer products widened part by part equal the exact arithmetic, in lines that stay short."""

from dataclasses import replace

import pytest

pytest.importorskip("tvm")

from hypothesis import given, settings
from hypothesis import strategies as st

from passfit.kernels.rules.integer.rows import nhwc_pmaddwd_blocked
from passfit.targets import get_target

from .....profiles import examples
from .. import test_computed_zero_points as computed
from ..channels import MACHINES, assert_exact, conv

pytestmark = pytest.mark.tvm
PAIRS, WIDE = MACHINES


def scheduled(kernel, machine=PAIRS):
    number = next(n for n, param in enumerate(kernel.params) if "w" in param.name)
    return list(nhwc_pmaddwd_blocked(kernel, frozenset({number}), machine))


@settings(max_examples=examples(8))
@given(
    st.integers(1, 15), st.sampled_from([800, 1024, 1056, 1536, 2000]), st.sampled_from([8, 16, 24, 48]), st.sampled_from(["uint8", "int8"]),
    st.sampled_from(MACHINES), st.integers(0, 9),
)  # fmt: skip
def test_products_of_matrices_are_exact(rows, depth, columns, dtype, machine, seed):
    kernel = computed.matrices(rows, depth, columns, dtype)
    (found,) = scheduled(kernel, machine)
    assert found.workspace <= 1536 + 16 * 16 * 4, "lines of a part, and sums that registers hold"
    computed.assert_exact(kernel, [found], seed)


@settings(max_examples=examples(4))
@given(
    st.sampled_from([512, 800]),
    st.integers(4, 9),
    st.sampled_from([(1, 1), (1, 2)]),
    st.sampled_from([(-128, "int8"), (200, "uint8")]),
    st.integers(0, 9),
)
def test_windows_of_one_tap_are_exact(channels, size, strides, zero, seed):
    kernel = conv(channels, 16, (3, size), (1, 1), strides=strides, zero=zero[0], dtype=zero[1])
    assert_exact(kernel, scheduled(kernel), seed)


@pytest.mark.parametrize(
    "kernel",
    [
        computed.matrices(64, 256, 16),
        conv(512, 8, (9, 9), (3, 3)),
        computed.matrices(64, 2 * 1031, 16),
        conv(512, 16, (9, 9), (1, 1), pads=(0, 1, 0, 1)),
    ],
    ids=["short runs", "several taps", "no parts", "padding"],
)
def test_other_forms_are_left_to_other_rules(kernel):
    assert scheduled(kernel) == []


def test_a_machine_without_pairs_or_for_short_code_has_none():
    kernel = computed.matrices(64, 1024, 16)
    assert scheduled(kernel)
    assert scheduled(kernel, replace(PAIRS, compact=True)) == []
    assert scheduled(kernel, get_target("rpi4").machine) == []
