"""Integer products by fours equal the exact arithmetic: bytes in place and in lines, zero points known and computed."""

from dataclasses import replace

import pytest

pytest.importorskip("tvm")

from hypothesis import given, settings
from hypothesis import strategies as st

from passfit.kernels.rules.integer.rows import DOT_RULES
from passfit.targets import get_target, how_to_run

from .....profiles import examples
from ....programs import HOST
from .. import test_computed_zero_points as computed
from ..channels import assert_exact, conv, row_of

pytestmark = pytest.mark.tvm
VNNI = DOT_RULES[0]
TARGET = get_target("x86-64-vnni")
#: with AVX-512, and with vectors of eight
MACHINES = [TARGET.machine, replace(TARGET.machine, lanes=8)]
#: any processor, and this one if it has the instruction
PROCESSORS = [HOST, *([TARGET.llvm_config() | HOST] if how_to_run(TARGET).native else [])]


def scheduled(kernel, machine=MACHINES[0]):
    number = next(n for n, param in enumerate(kernel.params) if "w" in param.name)
    return list(VNNI(kernel, frozenset({number}), machine))


@settings(max_examples=examples(10))
@given(
    st.sampled_from([1, 2, 3, 5, 8, 16]), st.sampled_from([8, 16, 24, 32]), st.tuples(st.integers(4, 8), st.integers(4, 40)),
    st.tuples(st.integers(1, 4), st.integers(1, 4)), st.tuples(st.integers(1, 2), st.integers(1, 3)),
    st.tuples(st.integers(1, 2), st.integers(1, 2)), st.tuples(*[st.integers(0, 2)] * 4),
    st.sampled_from([(-128, "int8"), (127, "int8"), (3, "int8"), (131, "uint8"), (0, "uint8")]), st.sampled_from(MACHINES), st.integers(0, 9),
)  # fmt: skip
def test_convolutions_are_exact(channels, filters, size, taps, strides, dilations, pads, zero, machine, seed):
    reach = [(tap - 1) * dilation + 1 for tap, dilation in zip(taps, dilations)]
    pads = tuple(min(pad, extent - 1) for pad, extent in zip(pads, reach * 2))
    if not all(extent + pads[n] + pads[n + 2] >= reach[n] for n, extent in enumerate(size)):
        return
    kernel = conv(
        channels, filters, size, taps, strides=strides, dilations=dilations, pads=pads, zero=zero[0], dtype=zero[1]
    )
    found = scheduled(kernel, machine)
    if found:
        assert_exact(kernel, found, seed, processors=PROCESSORS)
    else:
        run = channels * (taps[1] if dilations[1] == 1 else 1)
        places = (size[1] + pads[1] + pads[3] - reach[1]) // strides[1] + 1
        assert run < 4 or places == 1 or size[1] < 12


@settings(max_examples=examples(3))
@given(st.sampled_from([3, 16]), st.integers(12, 30), st.integers(1, 2), st.integers(0, 1), st.sampled_from(MACHINES))
def test_rows_at_a_time_are_exact(channels, width, stride, pad, machine):
    kernel = row_of(conv(channels, 16, (12, width), (3, 3), strides=(stride, stride), pads=(pad,) * 4, zero=-7))
    last = (12 + 2 * pad - 3) // stride
    assert_exact(kernel, scheduled(kernel, machine), rows=(0, 1, last), processors=PROCESSORS)


@settings(max_examples=examples(6))
@given(
    st.integers(1, 20), st.integers(4, 80), st.sampled_from([8, 16, 24, 48]), st.sampled_from(["uint8", "int8"]),
    st.sampled_from(MACHINES), st.integers(0, 9),
)  # fmt: skip
def test_zero_points_computed_at_run_time_are_exact(rows, depth, columns, dtype, machine, seed):
    kernel = computed.matrices(rows, depth, columns, dtype)
    computed.assert_exact(kernel, scheduled(kernel, machine), seed, PROCESSORS)


@settings(max_examples=examples(3))
@given(st.sampled_from([2, 3, 8]), st.integers(6, 9), st.sampled_from(["uint8", "int8"]), st.integers(0, 9))
def test_padding_is_a_computed_zero_point(channels, size, dtype, seed):
    kernel = computed.windows(channels, size, 3, 1, dtype, (0, 3))
    computed.assert_exact(kernel, scheduled(kernel), seed, PROCESSORS)


def test_long_rows_of_bytes_are_read_in_place():
    (found,) = scheduled(computed.matrices(64, 4096, 32))
    assert found.workspace <= 4 * 16 * 32  # the registers of AVX-512


@pytest.mark.parametrize(
    "kernel",
    [
        conv(8, 5, (9, 9), (1, 1)),
        conv(8, 8, (9, 9), (3, 3), last=()),
        conv(3, 8, (9, 9), (1, 1)),
        computed.matrices(6, 16, 16, zeros=(6, 1)),
    ],
    ids=["few filters", "planes", "three values", "a zero point for each row"],
)
def test_other_forms_are_left_to_other_rules(kernel):
    assert scheduled(kernel) == []


def test_a_machine_without_dots_or_for_short_code_has_none():
    kernel = conv(8, 16, (9, 9), (3, 3))
    assert scheduled(kernel)
    assert scheduled(kernel, replace(TARGET.machine, compact=True)) == []
    for name in ("x86-64", "x86-64-v4", "rpi5"):
        assert scheduled(kernel, get_target(name).machine) == [], name
