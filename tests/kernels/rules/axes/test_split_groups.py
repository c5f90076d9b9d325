"""Compare grouped convolutions, tiled group by group, with TVM's kernels."""

import numpy as np
import pytest

pytest.importorskip("tvm")

from hypothesis import given, settings
from hypothesis import strategies as st
from tvm import relax

from passfit.kernels.lower.schedule_program import schedule_program
from passfit.kernels.rules.axes.split_groups import split_groups
from passfit.kernels.weights.repack import Repack

from ....profiles import examples
from ...programs import lowered, random_inputs, run, weight

pytestmark = pytest.mark.tvm


def _convolution(shape, filters, taken, size, groups, stride=1):
    def body(x):
        result = relax.op.nn.conv2d(
            x, weight(filters, taken, size, size), groups=groups, padding=size // 2, strides=stride
        )
        return relax.op.nn.relu(relax.op.add(result, weight(1, filters, 1, 1, seed=2)))

    return lowered([shape], body)


@settings(max_examples=examples(12))
@given(
    st.sampled_from([2, 3, 4]), st.sampled_from([2, 5, 8, 12, 16]), st.sampled_from([1, 3, 8]), st.sampled_from([5, 7, 8]),
    st.sampled_from([1, 3]), st.sampled_from([1, 2]),
)  # fmt: skip
def test_grouped_convolutions(groups, filters, taken, side, size, stride):
    program = _convolution((1, groups * taken, side, side + 1), groups * filters, taken, size, groups, stride)
    (kernel,) = program.kernels.values()
    found = split_groups(kernel)
    assert found is not None and found.inner == filters
    scheduled, _ = schedule_program(program)
    inputs = random_inputs(program)
    for ours, reference in zip(run(scheduled, inputs), run(program, inputs), strict=True):
        np.testing.assert_allclose(ours, reference, rtol=1e-4, atol=1e-5 * max(1.0, float(np.abs(reference).max())))
    assert scheduled.program.weight_bytes == program.program.weight_bytes


@pytest.mark.parametrize(("filters", "taken", "groups"), [(8, 4, 1), (4, 1, 4)])
def test_one_group_or_one_filter_each_stays(filters, taken, groups):
    program = _convolution((1, taken * groups, 5, 5), filters, taken, 3, groups)
    (kernel,) = program.kernels.values()
    assert split_groups(kernel) is None


def test_a_repack_by_groups_moves_every_element_to_its_index():
    array = np.arange(24 * 5 * 3).reshape(24, 5, 3)
    repack = Repack(0, 0, 4, inner=8)
    packed = repack.apply(array)
    assert packed.shape == repack.shape(array.shape) == (2, 3, 5, 3, 4)
    for place in np.ndindex(array.shape):
        assert packed[tuple(repack.index_map(*place))] == array[place]
