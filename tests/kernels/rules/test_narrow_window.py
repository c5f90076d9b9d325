"""Windows over rows of one vector take their taps from the lanes of a row."""

import numpy as np
import pytest

pytest.importorskip("tvm")

from hypothesis import given, settings
from hypothesis import strategies as st
from tvm import relax

from passfit.codegen.objects import build_module
from passfit.kernels.rules.windows.narrow_window import narrow_windows
from passfit.targets import Machine
from passfit.tir.row_window import row_window
from passfit.tir.workspace import held_bytes

from ...profiles import examples
from ..programs import HOST, lowered, weight
from ..windows import Single

pytestmark = pytest.mark.tvm


def scheduled(window, machine):
    """Return the only schedule of a window; None if the rule leaves it to others."""
    return next((each.kernel for each in narrow_windows(window, frozenset(), machine)), None)


def convolved(shape, size, *, stride=1, padding=0, dilation=1, channels=3):
    def body(x):
        made = relax.op.nn.conv2d(
            x, weight(channels, 1, *size), strides=stride, padding=padding, dilation=dilation, groups=channels
        )
        return relax.op.nn.relu(relax.op.add(made, weight(channels, 1, 1, seed=2)))

    return Single(lowered([(2, channels, *shape)], body))


@settings(max_examples=examples(12))
@given(
    st.sampled_from([5, 7, 8, 12, 14, 16]), st.sampled_from([1, 3, 7, 14, 23]), st.sampled_from([(5, 5), (7, 7), (3, 5), (1, 31)]),
    st.sampled_from([1, 2]), st.booleans(), st.sampled_from([1, 2]), st.sampled_from([(16, 32), (16, 16), (8, 16)]),
)  # fmt: skip
def test_planes_of_narrow_rows(width, height, size, stride, more, dilation, vectors):
    padding = [size[0] // 2 * dilation, size[1] // 2 * dilation] * 2
    padding[3] += more
    single = convolved(
        ((height - 1) * stride + 1, (width - 1) * stride + 1), size, stride=stride, padding=padding, dilation=dilation
    )
    lanes, registers = vectors
    machine = Machine(lanes=lanes, registers=registers, transposes=True)
    made = scheduled(single.kernel, machine)
    if made is None:  # a row is longer than a vector, or a row of the data than two
        columns, most = single.shape[3], 8 if single.shape[3] <= 8 else 16
        assert most > lanes or 2 * columns <= most or (stride == 2 and columns == most)
        return
    assert held_bytes(made) <= machine.register_bytes
    ours = single.run(build_module({"f": made}, HOST)["f"], single.operands)
    np.testing.assert_allclose(ours, single.result, rtol=1e-4, atol=1e-4)


def test_windows_without_padding():
    single = convolved((9, 11), (5, 5))
    made = scheduled(single.kernel, Machine(lanes=8, transposes=True))
    np.testing.assert_allclose(
        single.run(build_module({"f": made}, HOST)["f"], single.operands), single.result, rtol=1e-4, atol=1e-4
    )


def test_other_windows_are_left_to_others():
    machine = Machine(lanes=8, transposes=True)
    single = convolved((7, 7), (5, 5), padding=2)
    assert scheduled(single.kernel, machine) is not None
    assert scheduled(single.kernel, Machine(lanes=8)) is None
    assert scheduled(single.kernel, Machine(lanes=8, transposes=True, compact=True)) is None
    assert scheduled(row_window(single.kernel, 2, 3), machine) is None
    assert scheduled(convolved((14, 14), (3, 3), padding=1).kernel, Machine(lanes=16, transposes=True)) is None
    assert scheduled(convolved((7, 4), (5, 5), padding=2).kernel, machine) is None
    assert scheduled(convolved((7, 9), (5, 5), padding=2).kernel, machine) is None
