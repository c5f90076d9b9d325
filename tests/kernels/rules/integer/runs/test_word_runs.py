"""Integer products by words of four bytes equal the exact arithmetic: signs kept, bytes in place and in lines."""

import pytest

pytest.importorskip("tvm")

from hypothesis import given, settings
from hypothesis import strategies as st

from passfit.kernels.rules.integer.rows import word_runs
from passfit.targets import get_target

from .....profiles import examples
from .. import test_computed_zero_points as computed
from ..channels import assert_exact, conv, fit_pads, row_of

pytestmark = pytest.mark.tvm
MACHINE = get_target("mps2-an386").machine


def scheduled(kernel, machine=MACHINE):
    number = next(n for n, param in enumerate(kernel.params) if "w" in param.name)
    return list(word_runs(kernel, frozenset({number}), machine))


@settings(max_examples=examples(10))
@given(
    st.sampled_from([1, 2, 3, 5, 8, 16]), st.sampled_from([1, 3, 8, 10]), st.tuples(st.integers(4, 8), st.integers(4, 12)),
    st.tuples(st.integers(1, 4), st.integers(1, 4)), st.tuples(st.integers(1, 2), st.integers(1, 3)),
    st.tuples(st.integers(1, 2), st.integers(1, 2)), st.tuples(*[st.integers(0, 2)] * 4),
    st.sampled_from([(-128, "int8"), (127, "int8"), (3, "int8"), (131, "uint8"), (0, "uint8")]), st.integers(0, 9),
)  # fmt: skip
def test_convolutions_are_exact(channels, filters, size, taps, strides, dilations, pads, zero, seed):
    pads = fit_pads(size, taps, dilations, pads)
    if pads is None:
        return
    kernel = conv(
        channels, filters, size, taps, strides=strides, dilations=dilations, pads=pads, zero=zero[0], dtype=zero[1]
    )
    if found := scheduled(kernel):
        assert_exact(kernel, found, seed)


@settings(max_examples=examples(3))
@given(st.sampled_from([3, 16]), st.integers(12, 20), st.integers(1, 2), st.integers(0, 1))
def test_rows_at_a_time_are_exact(channels, width, stride, pad):
    kernel = row_of(conv(channels, 6, (12, width), (3, 3), strides=(stride, stride), pads=(pad,) * 4, zero=-7))
    last = (12 + 2 * pad - 3) // stride
    assert_exact(kernel, scheduled(kernel), rows=(0, 1, last))


@settings(max_examples=examples(6))
@given(
    st.integers(1, 20),
    st.integers(4, 40),
    st.sampled_from([1, 7, 16]),
    st.sampled_from(["uint8", "int8"]),
    st.integers(0, 9),
)
def test_zero_points_computed_at_run_time_are_exact(rows, depth, columns, dtype, seed):
    kernel = computed.matrices(rows, depth, columns, dtype)
    if found := scheduled(kernel):
        computed.assert_exact(kernel, found, seed)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_bytes_of_a_single_place_are_read_in_place(dtype):
    (found,) = scheduled(conv(16, 8, (1, 1), (1, 1), zero=0, dtype=dtype))
    assert found.workspace <= 64  # the sums alone


@pytest.mark.parametrize("width", [7, 11, 26])
def test_the_last_tile_overlaps(width):
    kernel = conv(16, 4, (3, width), (3, 3), pads=(1, 1, 1, 1), zero=-9)
    assert_exact(kernel, scheduled(kernel), seed=width)


def test_only_a_core_without_vectors_and_with_smlad_has_them():
    kernel = conv(8, 16, (9, 9), (3, 3))
    assert scheduled(kernel)
    for name in ("x86-64", "x86-64-vnni", "rpi5", "rp2040", "rv32-virt", "visionfive2"):
        assert scheduled(kernel, get_target(name).machine) == [], name
