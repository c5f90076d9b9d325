"""Check that tiles away from edges read operands where they lie, and that all tiles compute the same."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("tvm")

import tvm_ffi
from hypothesis import given, settings
from hypothesis import strategies as st
from tvm import te, tirx, topi
from tvm.tirx import IfThenElse

from passfit.kernels.rules.tiles.tile_reduction import tile_reduction
from passfit.kernels.rules.tiles.unswitch_choices import unswitch_choices
from passfit.targets import get_target
from passfit.tir.loop_nests import iterations
from passfit.tir.row_window import row_window

from ....profiles import examples
from ...te_kernels import kernel_of, run

pytestmark = pytest.mark.tvm
MACHINE = get_target("x86-64").machine


def circular(x, count):
    return topi.concatenate(
        [
            topi.strided_slice(x, [x.shape[2] - count], [x.shape[2]], [1], [2]),
            x,
            topi.strided_slice(x, [0], [count], [1], [2]),
        ],
        2,
    )


def reflected(x, count):
    return topi.nn.mirror_pad(x, [0, 0, count], [0, 0, count])


def repeated(x, count):
    last = _long(int(x.shape[2]) - 1)
    shape = (*x.shape[:2], _long(int(x.shape[2]) + 2 * count))
    return te.compute(shape, lambda n, c, i: x[n, c, te.max(_long(0), te.min(last, i - _long(count)))])


def halves(x, count):
    """Zeros at the ends, and two tensors along the channels."""
    half = topi.split(x, 2, 1)
    return topi.nn.pad(topi.concatenate([half[1], half[0]], 1), [0, 0, count], [0, 0, count])


EDGES = {each.__name__: each for each in (circular, reflected, repeated, halves)}


def _long(value):
    return tirx.const(value, "int64")


def convolution(edges, channels, length, filters, taps, dilation):
    def body(x, w):
        padded = EDGES[edges](x, (taps - 1) * dilation // 2)
        c, j = te.reduce_axis((_long(0), _long(channels)), "c"), te.reduce_axis((_long(0), _long(taps)), "j")
        shape = (_long(1), _long(filters), _long(length))
        return topi.nn.relu(
            te.compute(shape, lambda n, f, y: te.sum(padded[n, c, y + j * _long(dilation)] * w[f, c, j], [c, j]))
        )

    return kernel_of([(1, channels, length), (filters, channels, taps)], body)


def count_tests(kernel) -> int:
    found: list[IfThenElse] = []
    tvm_ffi.structural_walk(kernel.body, (IfThenElse, found.append))
    return len(found)


@settings(max_examples=examples(16))
@given(
    st.sampled_from(list(EDGES)), st.sampled_from([2, 8, 12]), st.sampled_from([24, 41, 64]), st.sampled_from([3, 8, 16]),
    st.sampled_from([3, 5]), st.sampled_from([1, 2, 4]),
)  # fmt: skip
def test_all_tiles_compute_the_same(edges, channels, length, filters, taps, dilation):
    kernel = convolution(edges, channels, length, filters, taps, dilation)
    for late in (False, True):
        tiled = tile_reduction(kernel, frozenset(), MACHINE, copy_late=late)
        if tiled is not None:
            np.testing.assert_allclose(run(tiled.kernel), run(kernel), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("edges", EDGES)
def test_one_test_a_tile_takes_the_place_of_choices(edges):
    tiled = tile_reduction(convolution(edges, 8, 64, 16, 3, 2), frozenset({1}), MACHINE)
    assert tiled is not None and count_tests(tiled.kernel) == (2 if edges == "halves" else 1)


@pytest.mark.parametrize("edges", ["circular", "reflected", "repeated"])
def test_windows_of_rows_away_from_edges_read_in_place(edges):
    """The row is known when the kernel runs: the test asks for it."""
    window = row_window(convolution(edges, 8, 64, 16, 3, 2), 2, 4)
    tiled = tile_reduction(window, frozenset({1}), MACHINE)
    assert tiled is not None and count_tests(tiled.kernel) >= 1


def test_kernels_without_choices_are_left():
    kernel = kernel_of([(1, 8, 32), (16, 8, 3)], lambda x, w: topi.nn.conv1d_ncw(x, w, 1, 0, 1))
    tiled = tile_reduction(kernel, frozenset({1}), MACHINE)
    assert unswitch_choices(tiled.kernel) is tiled.kernel


def test_many_choices_are_left_at_once():
    """Clamp the indices of 24 reads, as three bilinear resizes do: 2^48 values in between."""

    def body(x, w):
        clamped = te.compute(
            (_long(16),), lambda i: sum(x[tirx.max(tirx.min(i + _long(k), _long(15)), _long(k - 3))] for k in range(24))
        )
        k = te.reduce_axis((_long(0), _long(9)), "k")
        return te.compute((_long(8),), lambda i: te.sum(clamped[i + k - _long(1)] * w[k], [k]))

    kernel = kernel_of([(16,), (9,)], body)
    assert unswitch_choices(kernel) is kernel


def test_choices_by_values_are_left():
    """A mask is data: no position tells it."""
    kernel = kernel_of(
        [(1, 8, 32), (1, 8, 32), (16, 8, 3)],
        lambda x, mask, w: topi.nn.conv1d_ncw(
            te.compute(x.shape, lambda n, c, i: tirx.if_then_else(mask[n, c, i] > 0, x[n, c, i], -x[n, c, i])),
            w,
            1,
            0,
            1,
        ),
    )
    tiled = tile_reduction(kernel, frozenset({1}), MACHINE)
    assert tiled is not None and count_tests(tiled.kernel) == 0


def test_what_each_step_would_copy_is_copied_once():
    """Places that no step of the sum tells apart: each step copied all of them."""

    def body(x, mask, w):
        chosen = te.compute((_long(16),), lambda i: tirx.if_then_else(mask[i] > 0, x[i], -x[i]))
        k = te.reduce_axis((_long(0), _long(16)), "k")
        return te.compute(
            (_long(8), _long(24)),
            lambda i, j: te.sum(chosen[tirx.floormod(tirx.floordiv(i, _long(64)) + k, _long(16))] * w[k, j], [k]),
        )

    kernel = kernel_of([(16,), (16,), (16, 24)], body)
    tiled = tile_reduction(kernel, frozenset(), MACHINE)
    assert tiled is not None and iterations(tiled.kernel.body) < 2 * 8 * 24 * 16
    np.testing.assert_allclose(run(tiled.kernel), run(kernel), rtol=1e-4, atol=1e-4)
