"""Check that sums scaled by their readers are the same, and that their terms lose a product."""

import numpy as np
import pytest

pytest.importorskip("tvm")

import tvm
from hypothesis import given, settings
from hypothesis import strategies as st
from tvm import te, topi

from passfit.kernels.rules.forms.scales_last import scales_last
from passfit.kernels.rules.rule import Speed
from passfit.kernels.schedule.candidates import schedules
from passfit.targets import get_target
from passfit.tir.expressions import loads
from passfit.tir.loop_nests import blocks_of

from ...te_kernels import placeholders, run

pytestmark = pytest.mark.tvm
MACHINE = get_target("x86-64").machine


def product(rows, depth, columns, epilogue, dtype="int8"):
    """Build a kernel of a matrix product by quantised weights with one scale a column."""
    data, weight, scale = placeholders([(rows, depth), (depth, columns), (columns,)], ["float32", dtype, "float32"])
    wide = te.compute(weight.shape, lambda k, n: weight[k, n].astype("float32") * scale[n])
    return te.create_prim_func([data, weight, scale, epilogue(topi.matmul(data, wide))])


def convolution(filters):
    data, weight, scale = placeholders([(1, 5, 6, 7), (filters, 5, 3, 3), (filters,)], ["float32", "int8", "float32"])
    wide = te.compute(weight.shape, lambda f, c, i, j: weight[f, c, i, j].astype("float32") * scale[f])
    return te.create_prim_func([data, weight, scale, topi.nn.relu(topi.nn.conv2d_nchw(data, wide, 1, 0, 1))])


def operands_of_sum(kernel):
    (block,) = (each for each in blocks_of(kernel) if each.init is not None)
    return {load.source for load in loads(block.body.value)} - {block.body.buffer}


@settings(max_examples=6, deadline=None)
@given(
    st.integers(1, 3),
    st.integers(2, 9),
    st.integers(1, 9),
    st.sampled_from([topi.nn.relu, lambda total: total, lambda total: topi.exp(total) * total]),
)
def test_sums_are_the_same_without_scales_in_their_terms(rows, depth, columns, epilogue):
    kernel = product(rows, depth, columns, epilogue)
    scaled = scales_last(kernel)
    assert len(operands_of_sum(scaled)) == 2
    np.testing.assert_allclose(run(scaled), run(kernel), rtol=1e-4, atol=1e-2)


def test_a_scaled_convolution_becomes_tiles_with_repacked_bytes():
    kernel = convolution(8)
    found = schedules(kernel, frozenset({1}), MACHINE).within(4096)
    assert found.speed is Speed.FAST
    assert [repack.parameter for repack in found.repacks] == [1]
    np.testing.assert_allclose(run(scales_last(kernel)), run(kernel), rtol=1e-4, atol=1e-2)


def test_a_kernel_of_floats_stays_the_same_object():
    kernel = product(2, 3, 4, topi.nn.relu, "float32")
    assert scales_last(kernel).same_as(kernel)


def test_scales_that_change_along_the_sum_stay():
    data, weight, scale = placeholders([(2, 6), (6, 4), (3, 4)], ["float32", "int8", "float32"])
    wide = te.compute(weight.shape, lambda k, n: weight[k, n].astype("float32") * scale[tvm.tirx.floordiv(k, 2), n])
    kernel = te.create_prim_func([data, weight, scale, topi.nn.relu(topi.matmul(data, wide))])
    assert scales_last(kernel).same_as(kernel)
