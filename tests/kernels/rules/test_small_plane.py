"""Planes narrower than a vector are unrolled; products with padding are left out."""

import numpy as np
import pytest

pytest.importorskip("tvm")

from hypothesis import given, settings
from hypothesis import strategies as st
from tvm import relax
from tvm.tirx import BufferStore
from tvm_ffi import structural_walk

from passfit.codegen.objects import build_module
from passfit.kernels.rules.windows.small_plane import small_planes
from passfit.targets import Machine
from passfit.tir.row_window import row_window
from passfit.tir.workspace import held_bytes

from ...profiles import examples
from ..programs import HOST, lowered, weight
from ..windows import Single

pytestmark = pytest.mark.tvm


def scheduled(kernel, machine=Machine()):
    """Return the only schedule of a kernel; None if the rule leaves it to others."""
    return next((each.kernel for each in small_planes(kernel, frozenset(), machine)), None)


def depthwise(x, size, stride, padding):
    made = relax.op.nn.conv2d(x, weight(5, 1, size, size), strides=stride, padding=padding, groups=5)
    return relax.op.nn.relu(relax.op.add(made, weight(5, 1, 1, seed=2)))


def maximum(x, size, stride, padding):
    return relax.op.nn.max_pool2d(x, (size, size), stride, padding)


def mean(x, size, stride, padding):
    return relax.op.nn.avg_pool2d(x, (size, size), stride, padding)


@settings(max_examples=examples(10))
@given(
    st.sampled_from([depthwise, maximum, mean]), st.sampled_from([2, 3]), st.sampled_from([1, 2]),
    st.sampled_from([1, 2, 3, 4]), st.sampled_from([1, 2, 3]), st.integers(0, 1), st.integers(0, 1),
)  # fmt: skip
def test_small_planes(body, size, stride, height, width, before, after):
    ends = [(each - 1) * stride + size - before - after for each in (height, width)]
    padding = [before, before, after, after]
    single = Single(lowered([(2, 5, *(max(each, 1) for each in ends))], lambda x: body(x, size, stride, padding)))
    made = scheduled(single.kernel)
    if made is None:  # a mean of one element has no window, and some planes are of one column of padding
        assert min(single.shape[2:]) == 1 or min(ends) < 1 or single.shape[3] > 3
        return
    assert held_bytes(made) <= Machine().register_bytes
    built = build_module({"f": made}, HOST)
    np.testing.assert_allclose(single.run(built["f"], single.operands), single.result, rtol=1e-5, atol=1e-5)


def test_products_with_padding_are_left_out():
    """Windows of 3 × 3 over a plane of 2 × 2 meet four of its elements each."""
    single = Single(lowered([(1, 5, 2, 2)], lambda x: depthwise(x, 3, 1, 1)))
    stores = []
    structural_walk(scheduled(single.kernel).body, (BufferStore, stores.append))
    starts = results = 4
    assert len(stores) == starts + 4 * 4 + results


@pytest.mark.parametrize("side", [4, 9])
def test_wider_planes_are_left_alone(side):
    assert scheduled(Single(lowered([(1, 5, side, side)], lambda x: depthwise(x, 3, 1, 1))).kernel) is None


def test_rows_of_a_stream_and_short_programs_are_left_alone():
    single = Single(lowered([(1, 5, 2, 2)], lambda x: depthwise(x, 3, 1, 1)))
    assert scheduled(row_window(single.kernel, 2, 1)) is None
    assert scheduled(single.kernel, Machine(compact=True)) is None
