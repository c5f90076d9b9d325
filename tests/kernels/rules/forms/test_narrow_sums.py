"""Check that narrowed kernels compute the same from fewer sums, and that rules then fit them."""

from math import prod

import numpy as np
import pytest

pytest.importorskip("tvm")

import tvm
from hypothesis import given, settings
from hypothesis import strategies as st
from tvm import te, topi

from passfit.kernels.rules.forms.narrow_sums import narrow_sums
from passfit.kernels.rules.rule import Speed
from passfit.kernels.schedule.candidates import schedules
from passfit.targets import get_target
from passfit.tir.loop_nests import blocks_of
from passfit.tir.row_window import row_window

from ...te_kernels import kernel_of, run

pytestmark = pytest.mark.tvm
MACHINE = get_target("x86-64").machine
PLANES = [(1, 3, 9, 7), (8, 3, 3, 3)]


def total_of(kernel):
    """Return the extents of the kernel's only sum."""
    (block,) = (each for each in blocks_of(kernel) if each.init is not None)
    return [int(extent) for extent in block.body.buffer.ty.shape]


def cut(value, *ranges, first=2):
    """Read these ranges of the axes from `first` on."""
    shape = [high - low for low, high in ranges]

    def element(*at):
        moved = [index + tvm.tirx.const(low, "int64") for index, (low, _) in zip(at[first:], ranges)]
        return value(*at[:first], *moved)

    return te.compute([*value.shape[:first], *(tvm.tirx.const(extent, "int64") for extent in shape)], element)


def convolved(x, w):
    return topi.nn.conv2d_nchw(x, w, 1, 1, 1)


CASES = {
    "behind a convolution": (lambda x, w: topi.nn.relu(cut(convolved(x, w), (1, 8), (2, 6))), [1, 8, 7, 4]),
    "behind a pooling": (
        lambda x, w: topi.nn.relu(cut(topi.nn.pool2d(x, (3, 3), (1, 1), (1, 1), (0, 0, 0, 0), "max"), (2, 7), (0, 4))),
        [1, 3, 5, 4],
    ),
    "two parts of one": (
        lambda x, w: (lambda y: topi.multiply(cut(y, (1, 4), (0, 5)), cut(y, (4, 7), (1, 6))))(convolved(x, w)),
        [1, 8, 6, 6],
    ),
    "within padding": (
        lambda x, w: topi.nn.pad(cut(convolved(x, w), (2, 9), (0, 5)), [0, 0, 1, 1], [0, 0, 1, 1]),
        [1, 8, 8, 6],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_narrowed_kernels_compute_the_same_from_fewer_sums(name):
    body, extents = CASES[name]
    kernel = kernel_of(PLANES, body)
    narrow = narrow_sums(kernel)
    assert total_of(narrow) == extents and prod(extents) < prod(total_of(kernel))
    assert narrow_sums(narrow).same_as(narrow)
    np.testing.assert_allclose(run(narrow), run(kernel), rtol=1e-6, atol=1e-6)


def test_a_rule_fits_a_convolution_with_a_slice_behind_it():
    kernel = kernel_of(PLANES, CASES["behind a convolution"][0])
    found = schedules(kernel, frozenset({1}), MACHINE).within(4096)
    assert found.speed == Speed.FAST


def test_a_slice_of_channels_is_narrowed_row_by_row():
    kernel = kernel_of(PLANES, lambda x, w: topi.nn.relu(cut(convolved(x, w), (4, 8), (0, 9), (0, 7), first=1)))
    rows = row_window(kernel, 2, 1)  # an axis of one row is a constant index
    assert total_of(narrow_sums(rows)) == [1, 4, 1, 7]
    assert schedules(rows, frozenset({2}), MACHINE, True).within(4096).speed <= Speed.LANES


@pytest.mark.parametrize(
    "body",
    [
        lambda x, w: topi.nn.relu(convolved(x, w)),
        lambda x, w: cut(topi.nn.relu(x), (1, 4), (0, 3)),
        lambda x, w: topi.nn.softmax(x, 3),
        convolved,
    ],
)
def test_what_is_read_whole_stays(body):
    kernel = kernel_of(PLANES, body)
    assert narrow_sums(kernel).same_as(kernel)


@settings(max_examples=8)
@given(st.data())
def test_any_box_of_a_sum_is_computed_alone(data):
    extents = data.draw(st.lists(st.integers(1, 6), min_size=3, max_size=3))
    lows = [data.draw(st.integers(0, extent - 1)) for extent in extents]
    box = [(low, data.draw(st.integers(low + 1, extent))) for low, extent in zip(lows, extents)]
    kernel = kernel_of([(*extents, 5)], lambda x: topi.negative(cut(topi.sum(x, 3), *box, first=0)))
    narrow = narrow_sums(kernel)
    assert total_of(narrow) == [high - low for low, high in box]
    np.testing.assert_allclose(run(narrow), run(kernel), rtol=1e-6, atol=1e-6)
