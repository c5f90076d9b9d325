"""Check that kernels with unrolled windows compute the same, and that rules then fit them."""

import numpy as np
import pytest

pytest.importorskip("tvm")

from hypothesis import given, settings
from hypothesis import strategies as st
from tvm import topi

from passfit.kernels.rules.forms.unroll_windows import unroll_windows
from passfit.kernels.rules.rule import Speed
from passfit.kernels.schedule.candidates import schedules
from passfit.targets import get_target
from passfit.tir.loop_nests import blocks_of

from ...te_kernels import kernel_of, run

pytestmark = pytest.mark.tvm
MACHINE = get_target("x86-64").machine


def pooled_shortcut(window=2, pad=0, kind="max", channels=8):
    """Build a pointwise convolution plus a pooling of another operand."""
    size = 2 * (6 if pad == 0 else 5) + window
    plane = (size + 2 * pad - window) // 2 + 1

    def body(data, weight, other):
        pool = topi.nn.pool2d(other, [window] * 2, [2, 2], [1, 1], [pad] * 4, kind)
        return topi.nn.relu(topi.add(topi.nn.conv2d(data, weight, 1, 0, 1), pool))

    return kernel_of([(1, 4, plane, plane), (channels, 4, 1, 1), (1, channels, size, size)], body)


def sums(kernel):
    return [block for block in blocks_of(kernel) if block.init is not None]


@settings(max_examples=12)
@given(
    window=st.integers(2, 3),
    pad=st.integers(0, 1),
    kind=st.sampled_from(["max", "avg"]),
    channels=st.sampled_from([3, 8]),
)
def test_a_window_beside_a_sum_is_an_expression(window, pad, kind, channels):
    kernel = pooled_shortcut(window, pad, kind, channels)
    unrolled = unroll_windows(kernel)
    assert len(sums(unrolled)) == 1
    assert np.allclose(run(unrolled), run(kernel), rtol=1e-5, atol=1e-6)


def test_a_rule_then_fits():
    """The kernel of two sums ran as plain loops, in 26 times the time."""
    best = schedules(pooled_shortcut(), frozenset({1}), MACHINE).within(4096)
    assert best.speed is Speed.FAST


@pytest.mark.parametrize("window", [2, 3])
def test_a_pooling_of_the_sum_stays(window):
    kernel = kernel_of(
        [(1, 4, 12, 12), (8, 4, 1, 1)],
        lambda data, weight: topi.nn.pool2d(
            topi.nn.conv2d(data, weight, 1, 0, 1), [window] * 2, [2, 2], [1, 1], [0] * 4, "max"
        ),
    )
    assert unroll_windows(kernel) is kernel


def test_a_pooling_alone_and_a_large_window_stay():
    alone = kernel_of([(1, 4, 12, 12)], lambda data: topi.nn.pool2d(data, [2, 2], [2, 2], [1, 1], [0] * 4, "max"))
    assert unroll_windows(alone) is alone
    large = pooled_shortcut(window=4)
    assert unroll_windows(large) is large


def test_a_window_that_a_product_reads_for_each_filter_stays():
    """Unrolled, it is pooled again for each filter: vww-int8 took 1.3 times the time."""

    def body(data, weight):
        return topi.nn.matmul(
            topi.reshape(topi.nn.pool2d(data, [3, 3], [3, 3], [1, 1], [0] * 4, "avg"), (1, 32)), weight
        )

    kernel = kernel_of([(1, 32, 3, 3), (32, 5)], body)
    assert unroll_windows(kernel) is kernel
    mean = kernel_of(
        [(1, 8, 4, 4)],
        lambda data: topi.sum(topi.nn.pool2d(data, [2, 2], [2, 2], [1, 1], [0] * 4, "max"), axis=(2, 3)),
    )
    assert len(sums(unroll_windows(mean))) == 1
