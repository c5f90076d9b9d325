"""Integer products by pairs over planes are exact: for machines that have them, of even channels, within a small workspace."""

from dataclasses import replace

import pytest

pytest.importorskip("tvm")

from hypothesis import given, settings
from hypothesis import strategies as st
from tvm import te

from passfit.frontend.relax.integer.quantity import Quantity
from passfit.frontend.relax.integer.sums import Requantisation, Sum, Window, convolution, product
from passfit.kernels.rules.integer.rows import nchw_pmaddwd
from passfit.kernels.schedule.candidates import RULE_WORKSPACE
from passfit.targets import get_target
from passfit.tir.workspace import workspace_bytes

from ....profiles import examples
from .channels import assert_exact
from .channels import conv as with_epilogue

pytestmark = pytest.mark.tvm
MACHINE = get_target("x86-64").machine
ZERO = Quantity(0)


def form(zero=3):
    return Sum((Quantity(zero), ZERO), Requantisation(Quantity(0.01), Quantity(-5), "int8"))


def conv(channels, filters, size, taps, stride=1, pad=0):
    x = te.placeholder((1, channels, *size), "int8", "x")
    w = te.placeholder((filters, channels, taps, taps), "int8", "w")
    window = Window((stride, stride), (1, 1), (pad, pad), (pad, pad))
    return te.create_prim_func([x, w, convolution(x, w, form=form(), window=window)], index_dtype_override="int64")


def matmul(m, k, n):
    a, b = te.placeholder((m, k), "int8", "a"), te.placeholder((k, n), "int8", "b")
    return te.create_prim_func([a, b, product(a, b, form=form())], index_dtype_override="int64")


def scheduled(kernel, machine=MACHINE):
    return list(nchw_pmaddwd(kernel, frozenset({1}), machine))


@settings(max_examples=examples(10))
@given(
    st.sampled_from([2, 6, 16, 64]), st.sampled_from([8, 16, 24]), st.integers(5, 30), st.sampled_from([1, 3]),
    st.integers(1, 2), st.integers(0, 1),
)  # fmt: skip
def test_lines_and_sums_are_the_whole_workspace(channels, filters, size, taps, stride, pad):
    found = scheduled(conv(channels, filters, (size, size), taps, stride, pad))
    assert len(found) == 1 and [each.parameter for each in found[0].repacks] == [1]
    assert workspace_bytes(found[0].kernel) <= found[0].workspace <= RULE_WORKSPACE


@pytest.mark.parametrize(
    ("channels", "taps", "strides", "dilations", "pads"),
    [
        (2, (1, 1), (1, 1), (1, 1), (0, 0, 0, 0)), (6, (3, 3), (1, 1), (1, 1), (1, 1, 1, 1)), (16, (3, 2), (2, 2), (1, 1), (0, 1, 1, 0)),
        (4, (3, 3), (1, 2), (2, 2), (2, 1, 0, 2)),
    ],
    ids=["a pair", "windows", "strides", "gaps"],
)  # fmt: skip
def test_planes_are_exact(channels, taps, strides, dilations, pads):
    kernel = with_epilogue(channels, 16, (7, 19), taps, strides=strides, dilations=dilations, pads=pads, last=())
    assert_exact(kernel, scheduled(kernel))


@pytest.mark.parametrize(
    "kernel",
    [conv(3, 16, (9, 9), 3), conv(8, 5, (9, 9), 1), matmul(4, 33, 16), matmul(4, 32, 12), conv(256, 16, (6, 6), 5)],
    ids=["odd channels", "few filters", "odd sums", "odd columns", "long lines"],
)
def test_other_forms_are_left_to_other_rules(kernel):
    assert scheduled(kernel) == []


def test_a_machine_without_pairs_or_for_short_code_has_none():
    assert scheduled(matmul(4, 32, 16))
    assert scheduled(matmul(4, 32, 16), replace(MACHINE, pmaddwd=False)) == []
    assert scheduled(matmul(4, 32, 16), replace(MACHINE, compact=True)) == []
    assert not get_target("rpi4").machine.pmaddwd
