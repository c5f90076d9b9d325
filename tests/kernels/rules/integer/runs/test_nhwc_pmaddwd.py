"""Integer products along runs equal the exact arithmetic: channels last, few channels, odd runs, windows of rows."""

from dataclasses import replace

import pytest

pytest.importorskip("tvm")

from hypothesis import given, settings
from hypothesis import strategies as st

from passfit.kernels.rules.integer.integer_sum import integer_sum
from passfit.kernels.rules.integer.rows import DOT_RULES, nhwc_pmaddwd
from passfit.targets import get_target

from .....profiles import examples
from .. import test_computed_zero_points as computed
from ..channels import MACHINES, assert_exact, conv, fit_pads, row_of

pytestmark = pytest.mark.tvm
VNNI = DOT_RULES[0]
PAIRS, WIDE = MACHINES


def scheduled(kernel, machine=PAIRS):
    number = next(n for n, param in enumerate(kernel.params) if "w" in param.name)
    return list(nhwc_pmaddwd(kernel, frozenset({number}), machine))


@settings(max_examples=examples(15))
@given(
    st.sampled_from([1, 2, 3, 5, 8, 16]), st.sampled_from([8, 16, 24, 32]), st.tuples(st.integers(4, 8), st.integers(4, 40)),
    st.tuples(st.integers(1, 4), st.integers(1, 4)), st.tuples(st.integers(1, 2), st.integers(1, 3)),
    st.tuples(st.integers(1, 2), st.integers(1, 2)), st.tuples(*[st.integers(0, 2)] * 4),
    st.sampled_from([(-128, "int8"), (0, "int8"), (3, "int8"), (131, "uint8")]), st.sampled_from(MACHINES), st.integers(0, 9),
    st.sampled_from([(0, 4), (4,), (0,)]),
)  # fmt: skip
def test_convolutions_are_exact(channels, filters, size, taps, strides, dilations, pads, zero, machine, seed, last):
    pads = fit_pads(size, taps, dilations, pads)
    if pads is None:
        return
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
    if found:
        assert_exact(kernel, found, seed)
    else:
        assert size[1] < 12 or 0 not in last or channels == 1 or channels % 2 or dilations[1] > 1


@settings(max_examples=examples(4))
@given(
    st.sampled_from([1, 3, 16]), st.integers(5, 30), st.sampled_from([(3, 3), (10, 4)]), st.integers(1, 2), st.integers(0, 1),
    st.sampled_from(MACHINES),
)  # fmt: skip
def test_rows_at_a_time_are_exact(channels, width, taps, stride, pad, machine):
    kernel = row_of(conv(channels, 16, (12, width), taps, strides=(stride, stride), pads=(pad,) * 4, zero=-7))
    last = (12 + 2 * pad - taps[0]) // stride
    assert_exact(kernel, scheduled(kernel, machine), rows=(0, 1, last))


@pytest.mark.parametrize("rule", [nhwc_pmaddwd, VNNI])
@pytest.mark.parametrize("name", ["x86-64", "x86-64-vnni"])
@pytest.mark.parametrize(("rows", "columns"), [(64, 384), (49, 64), (13, 48), (7, 512)])
def test_registers_hold_a_tile_with_its_operands(rule, name, rows, columns):
    machine = get_target(name).machine
    form = integer_sum(computed.matrices(rows, 64, columns, "uint8"), frozenset({computed.WEIGHT}), False)
    made = rule.build(form, machine, rule)
    vectors = made.width // made.lanes
    sums, weights, others = vectors * min(rows, made.high), vectors, 1 if rule is VNNI else 2
    assert sums + weights + others <= machine.registers


@pytest.mark.parametrize(
    "kernel",
    [
        conv(8, 5, (9, 9), (1, 1)),
        conv(8, 8, (9, 9), (3, 3), last=()),
        conv(256, 16, (6, 6), (5, 5)),
        conv(1, 8, (9, 9), (1, 1)),
        conv(1, 8, (1, 1), (3, 3), pads=(1, 1, 1, 1)),
    ],
    ids=["few filters", "planes of pairs", "long lines", "one value", "data of one value"],
)
def test_other_forms_are_left_to_other_rules(kernel):
    assert scheduled(kernel) == []


def test_a_machine_without_pairs_or_for_short_code_has_none():
    kernel = conv(8, 16, (9, 9), (3, 3))
    assert scheduled(kernel)
    assert scheduled(kernel, replace(PAIRS, compact=True)) == []
    assert scheduled(kernel, get_target("rpi4").machine) == []
