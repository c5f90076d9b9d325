"""Integer products by vectors of bytes equal the exact arithmetic: signs kept, bytes in place and in lines, short runs and rests."""

import pytest

pytest.importorskip("tvm")

from hypothesis import given, settings
from hypothesis import strategies as st

from passfit.kernels.rules.integer.rows import vector_runs
from passfit.kernels.schedule.candidates import schedules
from passfit.targets import get_target

from .....profiles import examples
from .. import test_computed_zero_points as computed
from ..channels import PROCESSORS, assert_exact, conv, fit_pads, row_of

pytestmark = pytest.mark.tvm
MACHINE = get_target("mps3-an547").machine


def scheduled(kernel, machine=MACHINE):
    number = next(n for n, param in enumerate(kernel.params) if "w" in param.name)
    return list(vector_runs(kernel, frozenset({number}), machine))


@settings(max_examples=examples(16))
@given(
    st.sampled_from([1, 3, 5, 8, 16, 17, 40, 64]), st.sampled_from([1, 3, 8, 10, 16]), st.tuples(st.integers(5, 8), st.integers(5, 12)),
    st.tuples(st.integers(1, 5), st.integers(1, 5)), st.tuples(st.integers(1, 2), st.integers(1, 3)),
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
        assert_exact(kernel, found, seed, processors=PROCESSORS[:1])


@settings(max_examples=examples(4))
@given(st.sampled_from([3, 8, 16, 40]), st.integers(12, 60), st.integers(1, 2), st.integers(0, 1))
def test_rows_at_a_time_are_exact(channels, width, stride, pad):
    kernel = row_of(conv(channels, 8, (12, width), (3, 3), strides=(stride, stride), pads=(pad,) * 4, zero=-7))
    last = (12 + 2 * pad - 3) // stride
    assert_exact(kernel, scheduled(kernel), rows=(0, 1, last), processors=PROCESSORS[:1])


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


def test_whole_vectors_are_read_in_place():
    (found,) = scheduled(conv(32, 8, (4, 5), (1, 1), zero=0))
    assert found.workspace <= 128  # the sums alone, twice


@pytest.mark.parametrize(
    "taps, channels, values", [(1, 4, 4), (1, 8, 8), (1, 3, 4), (3, 16, 144), (3, 3, 48), (2, 17, 96)]
)
def test_weights_of_short_runs_take_no_whole_vectors(taps, channels, values):
    kernel = conv(channels, 4, (6, 6), (taps, taps))
    (found,) = scheduled(kernel)
    (repack,) = found.repacks
    blocks, size = repack.shape(repack.extents)
    assert blocks * size == 4 * (values + 4)  # and the start of each sum


def test_cores_with_mve_have_them_first():
    kernel = conv(8, 16, (9, 9), (3, 3))
    number = next(n for n, param in enumerate(kernel.params) if "w" in param.name)
    chosen = schedules(kernel, frozenset({number}), MACHINE).within(4096)
    (found,) = scheduled(kernel)
    assert [each.group for each in chosen.repacks] == [each.group for each in found.repacks] == [16]
    for name in ("x86-64", "x86-64-vnni", "rpi5", "mps2-an386", "stm32u585", "rp2040", "rv32-virt"):
        assert scheduled(kernel, get_target(name).machine) == [], name
