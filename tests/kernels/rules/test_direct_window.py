"""Windows without padding are read where they lie, in whole vectors, and continue sums in place."""

import numpy as np
import pytest

pytest.importorskip("tvm")

import tvm
from hypothesis import given, settings
from hypothesis import strategies as st
from tvm import relax

from passfit.codegen.objects import build_module
from passfit.kernels.rewrite.partial_sum import partial_sum
from passfit.kernels.rewrite.window_taps import tap_window
from passfit.kernels.rules.windows.direct_window import direct_windows
from passfit.kernels.schedule.sum_in_place import continues_in_place
from passfit.targets import Machine
from passfit.tir.row_window import row_window
from passfit.tir.workspace import held_bytes

from ...profiles import examples
from ..programs import HOST, lowered, weight
from ..windows import Single

pytestmark = pytest.mark.tvm


def scheduled(window, machine):
    """Return the only schedule of a window; None if the rule leaves it to others."""
    return next((each.kernel for each in direct_windows(window, frozenset(), machine)), None)


def check(made, single, rows=0):
    """Compare a schedule with its kernel: whole, or `rows` rows from each row on."""
    built = build_module({"f": made}, HOST)
    if rows == 0:
        np.testing.assert_allclose(single.run(built["f"], single.operands), single.result, rtol=1e-4, atol=1e-4)
    for row in range(single.shape[2] - rows + 1) if rows else ():
        ours = single.run(built["f"], single.operands, (2, rows), row)
        np.testing.assert_allclose(ours, single.result[:, :, row : row + rows], rtol=1e-4, atol=1e-4)


@settings(max_examples=examples(8))
@given(
    st.sampled_from([4, 5, 8, 13, 16, 27, 37]), st.sampled_from([1, 2, 3]), st.sampled_from([(2, 2), (3, 3), (1, 4)]),
    st.sampled_from([1, 2]), st.booleans(), st.sampled_from([4, 8, 16]),
)  # fmt: skip
def test_rows_of_windows(width, stride, size, axis, depthwise, lanes):
    sides = [2 * stride + size[0], (width - 1) * stride + size[1]]

    def body(x):
        if depthwise:
            made = relax.op.nn.conv2d(x, weight(3, 1, *size), strides=stride, groups=3)
            return relax.op.nn.relu(relax.op.add(made, weight(3, 1, 1, seed=2)))
        return relax.op.nn.max_pool2d(x, size, strides=stride)

    single, machine = Single(lowered([(1, 3, *sides)], body)), Machine(lanes=lanes, transposes=True)
    made = scheduled(row_window(single.kernel, axis, 1), machine)
    assert made is not None and held_bytes(made) <= machine.register_bytes
    built = build_module({"f": made}, HOST)
    for row in {0, single.shape[axis] - 1}:
        ours = single.run(built["f"], single.operands, (axis, 1), row)
        np.testing.assert_allclose(ours, single.result.take([row], axis), rtol=1e-5, atol=1e-5)


@settings(max_examples=examples(8))
@given(
    st.sampled_from([4, 7, 14, 16, 31, 57]), st.sampled_from([1, 2, 3]), st.sampled_from([(3, 1), (3, 2), (5, 1), (7, 1)]),
    st.sampled_from([(0, 0), (1, 0), (0, 1)]), st.sampled_from([0, 1, 2]), st.sampled_from([4, 8, 16]),
)  # fmt: skip
def test_planes_and_rows_with_padding(width, stride, window, more, rows, lanes):
    size, dilation = window
    padding = [size // 2 * dilation + each for each in (*more, *more[::-1])]

    def body(x):
        made = relax.op.nn.conv2d(
            x, weight(6, 1, size, size), strides=stride, padding=padding, dilation=dilation, groups=3
        )
        return relax.op.nn.relu(relax.op.add(made, weight(6, 1, 1, seed=2)))

    single, machine = (
        Single(lowered([(1, 3, 9 if rows else 6 * stride + 1, width)], body)),
        Machine(lanes=lanes, transposes=True),
    )
    made = scheduled(row_window(single.kernel, 2, rows) if rows else single.kernel, machine)
    if made is None:  # a tap has no vector of columns that are not padding, or padded lines take less
        assert single.shape[3] < 4 + max(padding) or (rows == 0 and size > 3 and single.shape[3] < 16)
        return
    assert held_bytes(made) <= machine.register_bytes
    check(made, single, rows)


@settings(max_examples=examples(5))
@given(
    st.sampled_from([17, 20, 33, 50, 100]), st.sampled_from([1, 2, 3, 6]), st.sampled_from([1, 3]), st.sampled_from([1, 2]),
    st.sampled_from([(3, 1), (3, 2), (5, 1)]), st.sampled_from([0, 1, 3]), st.sampled_from([4, 8, 16]),
)  # fmt: skip
def test_filters_of_a_group_share_its_planes(width, filters, channels, groups, window, rows, lanes):
    size, dilation = window

    def body(x):
        made = relax.op.nn.conv2d(
            x,
            weight(filters * groups, channels, size, size),
            padding=size // 2 * dilation,
            dilation=dilation,
            groups=groups,
        )
        return relax.op.nn.relu(relax.op.add(made, weight(filters * groups, 1, 1, seed=2)))

    single = Single(lowered([(1, channels * groups, 9 if rows else 7, width)], body))
    machine = Machine(lanes=lanes, transposes=True)
    made = scheduled(row_window(single.kernel, 2, rows) if rows else single.kernel, machine)
    if made is None:  # vectors of filters are as long, or each row is computed once, and longer than registers hold
        assert width < lanes or filters * 2 > lanes or rows or size == 5
        return
    check(made, single, rows)


@pytest.mark.parametrize("depth, filters, lanes", [(3, 4, 8), (1, 16, 8), (2, 3, 16)])
def test_windows_over_volumes(depth, filters, lanes):
    def body(x):
        return relax.op.nn.conv3d(x, weight(filters, depth, 3, 3, 3), padding=1)

    single = Single(lowered([(1, depth, 4, 5, 40)], body))
    check(scheduled(single.kernel, Machine(lanes=lanes, transposes=True)), single)


@pytest.mark.parametrize("length, taps, stride", [(20, 3, 1), (60, 31, 1), (700, 9, 1), (131, 7, 2)])
def test_lines_with_weights_of_their_own(length, taps, stride):
    def body(x):
        return relax.op.nn.relu(relax.op.nn.conv1d(x, weight(5, 1, taps), strides=stride, padding=taps // 2, groups=5))

    single = Single(lowered([(2, 5, length)], body))
    check(scheduled(single.kernel, Machine(lanes=16, transposes=True)), single)


@pytest.mark.parametrize("lanes", [4, 8, 16])
def test_a_maximum_continues_in_place(lanes):
    def body(x):
        return relax.op.nn.max_pool2d(x, (3, 3), strides=2)

    single = Single(lowered([(1, 2, 7, 55)], body, ("legalize", "fold-constant", "fuse-operators{over=pooling}")))
    made = {
        f"f{n}": scheduled(tap_window(single.kernel, 2, n), Machine(lanes=lanes, transposes=True)) for n in range(3)
    }
    built = build_module(made, HOST)
    result = tvm.runtime.tensor(np.full(single.shape, np.nan, single.dtype))
    given_, part = tvm.runtime.tensor(single.operands[0]), np.array(single.result)
    for row in range(single.shape[2]):
        line = tvm.runtime.tensor(np.full((*single.shape[:2], 1, single.shape[3]), np.nan, single.dtype))
        built["f0"](row, given_, line)
        for tap in (1, 2):
            whole = np.array(result.numpy())
            whole[:, :, row : row + 1] = line.numpy()
            built[f"f{tap}"](row, given_, tvm.runtime.tensor(whole), line)
        part[:, :, row : row + 1] = line.numpy()
    np.testing.assert_allclose(part, single.result)


@settings(max_examples=examples(6))
@given(
    st.sampled_from([8, 14, 20, 33]), st.sampled_from([1, 2]), st.sampled_from([2, 3]), st.booleans(), st.booleans(), st.sampled_from([1, 2, 4]),
    st.sampled_from([4, 8]),
)  # fmt: skip
def test_rows_of_padded_poolings(width, stride, size, largest, counted, rows, lanes):
    def body(x):
        if largest:
            return relax.op.nn.max_pool2d(x, (size, size), strides=stride, padding=1)
        return relax.op.nn.avg_pool2d(x, (size, size), strides=stride, padding=1, count_include_pad=counted)

    single = Single(lowered([(1, 3, 9, width)], body))
    single.operands = [4 - each for each in single.operands]  # about half below 0
    single.result = single.run(build_module({"f": single.kernel}, HOST)["f"], single.operands)
    made = scheduled(row_window(single.kernel, 2, rows), Machine(lanes=lanes, transposes=True))
    assert made is not None
    check(made, single, rows)


def test_padded_planes_and_short_code_are_left_to_others():
    def padded(x):
        return relax.op.nn.max_pool2d(x, (3, 3), padding=1)

    single = Single(lowered([(1, 3, 9, 20)], padded))
    assert scheduled(single.kernel, Machine(transposes=True)) is None
    assert scheduled(row_window(single.kernel, 2, 1), Machine(transposes=True)) is not None
    plain = row_window(Single(lowered([(1, 3, 9, 20)], lambda x: relax.op.nn.max_pool2d(x, (3, 3)))).kernel, 2, 1)
    assert scheduled(plain, Machine(transposes=True)) is not None
    assert scheduled(plain, Machine()) is None and scheduled(plain, Machine(transposes=True, compact=True)) is None


@pytest.mark.parametrize("width", [14, 16, 27])
@pytest.mark.parametrize("lanes", [4, 8])
def test_a_sum_of_channels_continues_in_place(width, lanes):
    single = Single(lowered([(1, 4, 9, width)], lambda x: relax.op.nn.conv2d(x, weight(1, 4, 5, 1), padding=(2, 0))))
    made = scheduled(partial_sum(single.kernel, 0, 1, 1).part, Machine(lanes=lanes, transposes=True))
    assert continues_in_place(made, len(made.params) - 2)
