"""Check that a kernel of two sums runs its stages, each by its own rule."""

import numpy as np
import pytest

pytest.importorskip("tvm")

from tvm import topi

from passfit.kernels.rules.rule import Speed
from passfit.kernels.schedule.candidates import schedules
from passfit.targets import get_target
from tests.kernels.te_kernels import kernel_of, run

pytestmark = pytest.mark.tvm


def test_a_mean_behind_a_convolution_is_no_plain_loop():
    """As plain loops, MobileNet's last convolution took 5 times as long as all before it."""
    kernel = kernel_of(
        [(1, 64, 7, 7), (256, 64, 1, 1)],
        lambda data, weight: topi.divide(topi.sum(topi.nn.relu(topi.nn.conv2d(data, weight, 1, 0, 1)), [2, 3]), 49.0),
    )
    found = schedules(kernel, frozenset(), get_target("x86-64").machine)
    plain = [each for each in found.candidates() if not each.staged]
    best = found.within(plain[0].workspace)
    assert best.staged and best.speed < Speed.LOOPS and best.workspace < plain[0].workspace
    np.testing.assert_allclose(run(best.kernel), run(kernel), rtol=1e-4, atol=1e-5)
