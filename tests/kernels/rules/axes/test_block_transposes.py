"""Compare transposes walked in blocks with numpy; check which are."""

import numpy as np
import pytest

pytest.importorskip("tvm")

from tvm import relax

from passfit.kernels.lower.schedule_program import schedule_program
from passfit.kernels.rules.axes.block_transposes import block_transposes
from passfit.kernels.rules.flatten_axes import flatten_axes

from ...programs import lowered, random_inputs, run

pytestmark = pytest.mark.tvm


def _program(shape, order):
    return lowered([shape], lambda x: relax.op.exp(relax.op.permute_dims(x, list(order))))


@pytest.mark.parametrize(
    ("shape", "order"),
    [((256, 512), (1, 0)), ((1, 144, 16, 64), (0, 2, 3, 1)), ((3, 40, 1024), (0, 2, 1)), ((32, 3, 1024), (2, 1, 0)), ((200, 8, 4, 32), (3, 1, 2, 0))],
)  # fmt: skip
def test_blocks_hold_the_same_elements(shape, order):
    program = _program(shape, order)
    (kernel,) = program.kernels.values()
    assert block_transposes(flatten_axes(kernel)) is not None
    scheduled, _ = schedule_program(program)
    inputs = random_inputs(program)
    for each in (program, scheduled):
        np.testing.assert_allclose(run(each, inputs)[0], np.exp(inputs[0].transpose(order)), rtol=1e-5)


@pytest.mark.parametrize(
    ("shape", "order"),
    [((64, 56), (1, 0)), ((512, 509), (1, 0)), ((4, 64, 3, 32), (0, 2, 1, 3)), ((512, 3), (1, 0))],
)  # fmt: skip
def test_small_prime_and_contiguous_ones_stay(shape, order):
    (kernel,) = _program(shape, order).kernels.values()
    assert block_transposes(flatten_axes(kernel)) is None


@pytest.mark.parametrize("shapes", [[(512, 512), ()], [(), ()]])
def test_a_scalar_has_no_line(shapes):
    program = lowered(shapes, relax.op.add)
    (kernel,) = program.kernels.values()
    assert block_transposes(flatten_axes(kernel)) is None
    inputs = random_inputs(program)
    np.testing.assert_allclose(run(schedule_program(program)[0], inputs)[0], inputs[0] + inputs[1], rtol=1e-5)
