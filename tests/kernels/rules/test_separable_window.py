"""Large poolings combine columns first, then rows: the same extremes, and sums in another order."""

import numpy as np
import pytest

pytest.importorskip("tvm")

from hypothesis import given, settings
from hypothesis import strategies as st
from tvm import relax

from passfit.codegen.objects import build_module
from passfit.kernels.rules.windows.separable_window import separable_windows
from passfit.targets import Machine
from passfit.tir.row_window import row_window
from passfit.tir.workspace import held_bytes

from ...profiles import examples
from ..programs import HOST, lowered, weight
from ..windows import Single

pytestmark = pytest.mark.tvm


def scheduled(window, machine):
    """Return the only schedule of a window; None if the rule leaves it to others."""
    return next((each.kernel for each in separable_windows(window, frozenset(), machine)), None)


def pooled(x, mean, size, strides, padding, dilation=1):
    if mean:
        return relax.op.nn.avg_pool2d(x, size, strides, padding, dilation, count_include_pad=mean == 2)
    return relax.op.nn.relu(relax.op.nn.max_pool2d(x, size, strides, padding, dilation))


@settings(max_examples=examples(12))
@given(
    st.sampled_from([4, 7, 16, 31, 57]), st.sampled_from([1, 2]), st.sampled_from([(7, 7), (13, 13), (9, 21), (21, 9)]),
    st.sampled_from([1, 2]), st.booleans(), st.sampled_from([0, 1, 2]), st.sampled_from([0, 1, 2]), st.sampled_from([4, 8, 16]),
)  # fmt: skip
def test_planes_and_rows(width, stride, size, dilation, padded, mean, rows, lanes):
    padding = [side // 2 * dilation - (n > 1) for n, side in enumerate((*size, *size))] if padded else [0] * 4
    ends = [(each - 1) * stride + (side - 1) * dilation + 1 for each, side in zip((6, width), size)]
    sides = [max(end - padding[n] - padding[n + 2], 1) for n, end in enumerate(ends)]
    single = Single(lowered([(1, 3, *sides)], lambda x: pooled(x, mean, size, stride, padding, dilation)))
    machine = Machine(lanes=lanes, transposes=True)
    made = scheduled(row_window(single.kernel, 2, rows) if rows else single.kernel, machine)
    if made is None:  # the window gains little, the data have no vector, or registers hold no line
        assert (size == (7, 7) and stride == 2) or sides[1] < 4 or rows
        return
    if rows:
        assert held_bytes(made) <= machine.register_bytes
    built = build_module({"f": made}, HOST)
    if not rows:
        np.testing.assert_allclose(single.run(built["f"], single.operands), single.result, rtol=1e-5)
    for row in range(single.shape[2] - rows + 1) if rows else ():
        ours = single.run(built["f"], single.operands, (2, rows), row)
        np.testing.assert_allclose(ours, single.result[:, :, row : row + rows], rtol=1e-5)


@pytest.mark.parametrize("mean", [0, 1, 2])
def test_a_square_of_thirteen_takes_this_rule(mean):
    single = Single(lowered([(2, 3, 20, 20)], lambda x: pooled(x, mean, (13, 13), 1, 6)))
    assert scheduled(single.kernel, Machine()) is not None


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(lambda x: pooled(x, 0, (3, 3), 1, 1), id="few taps"),
        pytest.param(lambda x: pooled(x, 0, (8, 8), 8, 0), id="windows apart"),
        pytest.param(lambda x: pooled(x, 0, (1, 15), 1, (0, 7)), id="no columns"),
        pytest.param(lambda x: relax.op.nn.conv2d(x, weight(3, 1, 13, 13), padding=6, groups=3), id="weights"),
        pytest.param(lambda x: relax.op.max(x, 1), id="no window"),
    ],
)
def test_others_are_left_alone(body):
    assert scheduled(Single(lowered([(1, 3, 32, 32)], body)).kernel, Machine(transposes=True)) is None


def test_a_short_program_is_left_alone():
    single = Single(lowered([(1, 3, 20, 20)], lambda x: pooled(x, 0, (13, 13), 1, 6)))
    assert scheduled(single.kernel, Machine(compact=True)) is None


def test_a_plane_of_sums_over_a_row_is_left_to_others():
    single = Single(lowered([(8,)], lambda x: relax.op.sum(relax.op.expand_dims(x, 0), [0], keepdims=True)))
    assert scheduled(single.kernel, Machine(lanes=8, transposes=True)) is None
