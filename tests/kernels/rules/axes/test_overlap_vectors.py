"""Compare kernels of odd extents, whose last vectors overlap, with TVM's kernels; check where none may."""

import numpy as np
import pytest

pytest.importorskip("tvm")

from hypothesis import given, settings
from hypothesis import strategies as st
from tvm import relax

from passfit.kernels.lower.schedule_program import schedule_program
from passfit.kernels.rules.axes.overlap_vectors import widened
from passfit.kernels.rules.flatten_axes import flatten_axes
from passfit.kernels.rules.rule import Speed
from passfit.kernels.schedule.candidates import schedules
from passfit.targets import Machine

from ....profiles import examples
from ...programs import lowered, random_inputs, run, weight

pytestmark = pytest.mark.tvm
_FEW = settings(max_examples=examples(12))
_ODD = st.sampled_from([3, 5, 7, 9, 12, 15, 17, 23, 31, 49, 97])


def _agrees(program, growth: float = 0.0) -> None:
    scheduled, _ = schedule_program(program)
    inputs = random_inputs(program)
    for ours, reference in zip(run(scheduled, inputs), run(program, inputs), strict=True):
        np.testing.assert_allclose(ours, reference, rtol=1e-4, atol=1e-5 * max(1.0, float(np.abs(reference).max())))
    before, after = program.program.weight_bytes, scheduled.program.weight_bytes
    assert (after > before if growth else after == before) and after <= (1 + growth) * before


def _wide(program) -> list[int]:
    (kernel,) = program.kernels.values()
    return [each.extent for each in widened(flatten_axes(kernel, frozenset({1})), Machine())]


@_FEW
@given(st.sampled_from([1, 3, 8]), st.sampled_from([1, 6, 13]), st.sampled_from([3, 16, 33]), _ODD)
def test_products_of_activations(batch, rows, depth, columns):
    shapes = [(batch, rows, depth), (batch, depth, columns)]
    program = lowered(shapes, lambda x, y: relax.op.nn.relu(relax.op.matmul(x, y)))
    (kernel,) = program.kernels.values()
    if rows * columns > 64:
        assert schedules(kernel, frozenset(), Machine()).within(4096).speed is Speed.FAST
    _agrees(program)


@_FEW
@given(_ODD, st.sampled_from([1, 5, 24]), st.sampled_from([20, 33]), st.sampled_from([1, 3]))
def test_filters(filters, channels, length, stride):
    def body(x):
        result = relax.op.nn.conv1d(x, weight(filters, channels, 5), strides=stride, padding=2)
        return relax.op.nn.relu(relax.op.add(result, weight(1, filters, 1, seed=2)))

    _agrees(lowered([(1, channels, length)], body))


@pytest.mark.parametrize("filters", [127, 255, 257, 1001])
def test_a_long_axis_is_repacked_in_blocks(filters):
    """As whole lines of an odd length, vectors of the weight began anywhere in lines of the cache."""
    _agrees(lowered([(1, 24, 20)], lambda x: relax.op.nn.conv1d(x, weight(filters, 24, 5), padding=2)), growth=1 / 16)
    _agrees(lowered([(9, 24)], lambda x: relax.op.matmul(x, weight(24, filters))), growth=1 / 16)


@pytest.mark.parametrize("filters", [55, 87, 103])
def test_a_long_axis_in_one_tile_is_a_block(filters):
    """One row of a spectrogram has all its sums in registers."""
    _agrees(lowered([(1, 24, 5)], lambda x: relax.op.nn.conv1d(x, weight(filters, 24, 5))), growth=1 / 16)


def test_a_residual_keeps_its_place():
    shapes = [(13, 4), (13, 9)]
    program = lowered(
        shapes, lambda x, y: relax.op.add(relax.op.matmul(x, weight(4, 9)), y), ("legalize", "fuse-operators")
    )
    scheduled, _ = schedule_program(program)
    assert [step.in_place for step in scheduled.program.steps] != [()]
    assert not _wide(program)


@pytest.mark.parametrize(
    ("shapes", "body"),
    [
        ([(4, 16)], lambda x: relax.op.matmul(x, weight(16, 24))),  # whole vectors
        ([(4, 16)], lambda x: relax.op.matmul(x, weight(16, 2))),  # less than two short vectors
        ([(1, 3, 19, 19)], lambda x: relax.op.nn.conv2d(x, weight(8, 3, 3, 3), padding=1, strides=2, dilation=2)),
    ],
)
def test_other_kernels_stay(shapes, body):
    assert not _wide(lowered(shapes, body))


@pytest.mark.parametrize(("filters", "lanes"), [(3, 2), (5, 4), (7, 4), (9, 8), (13, 8), (15, 8)])
def test_few_filters_are_two_vectors_of_fewer_lanes(filters, lanes):
    program = lowered([(1, 16, 33)], lambda x: relax.op.nn.conv1d(x, weight(filters, 16, 5), padding=2))
    (kernel,) = program.kernels.values()
    wide = next(widened(flatten_axes(kernel, frozenset({1})), Machine(lanes=16)))
    assert (wide.extent, wide.lanes, wide.rounded) == (filters, lanes, 2 * lanes)


def test_machines_without_need():
    (kernel,) = lowered([(4, 16)], lambda x: relax.op.matmul(x, weight(16, 97))).kernels.values()
    assert [each.rounded for each in widened(kernel, Machine())] == [104]
    assert not list(widened(kernel, Machine(lanes=1)))
    assert not list(widened(kernel, Machine(lanes=32, lmul=4)))
