"""Check that tiles of rows inside their operand ask once, and that all tiles compute the same."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("tvm")

import tvm_ffi
from hypothesis import given, settings
from hypothesis import strategies as st
from tvm import te, tirx, topi
from tvm.tirx import For, IfThenElse

from passfit.kernels.rules.tiles.tile_reduction import tile_reduction
from passfit.kernels.rules.tiles.unswitch_guards import unswitch_guards
from passfit.targets import get_target
from passfit.tir.row_window import row_window

from ....profiles import examples
from ...te_kernels import kernel_of, run

pytestmark = pytest.mark.tvm
MACHINE = get_target("x86-64").machine


def _long(value):
    return tirx.const(value, "int64")


def convolution(channels: int, length: int, taps: int, dilation: int):
    """Convolve along the last axis, padded by zeros, with the filters of a weight last: 16 of them."""
    around = (taps - 1) * dilation // 2

    def body(x, w):
        padded = topi.nn.pad(x, [0, 0, around], [0, 0, around]) if around else x
        c, j = te.reduce_axis((_long(0), _long(channels)), "c"), te.reduce_axis((_long(0), _long(taps)), "j")
        shape = (_long(1), _long(16), _long(length + 2 * around - (taps - 1) * dilation))
        return te.compute(shape, lambda n, f, y: te.sum(padded[n, c, y + j * _long(dilation)] * w[c, j, f], [c, j]))

    return kernel_of([(1, channels, length), (channels, taps, 16)], body)


def all_of(stmt, kind) -> list:
    """List the statements of a kind, outer ones first."""
    found: list = []
    tvm_ffi.structural_walk(stmt, (kind, found.append))
    return found


def tiled_rows(kernel, rows: int):
    tiled = tile_reduction(row_window(kernel, 2, rows), frozenset(), MACHINE)
    assert tiled is not None
    return tiled.kernel


def test_rows_inside_are_asked_for_once_around_the_sum():
    kernel = tiled_rows(convolution(8, 60, 3, 4), 6)
    (once,) = [each for each in all_of(kernel.body, IfThenElse) if each.else_case is not None]
    assert not all_of(once.then_case, IfThenElse) and all_of(once.else_case, IfThenElse)
    for case in (once.then_case, once.else_case):
        assert {3, 8} <= {int(loop.extent) for loop in all_of(case, For)}


@settings(max_examples=examples(8))
@given(
    st.integers(1, 6), st.integers(20, 40), st.sampled_from([3, 5]), st.integers(1, 4), st.integers(2, 7), st.integers(0, 99)
)  # fmt: skip
def test_all_rows_are_the_same(channels, length, taps, dilation, rows, seed):
    kernel = convolution(channels, length, taps, dilation)
    tiled, whole = tiled_rows(kernel, rows), run(kernel, seed)
    for first in sorted({0, 1, taps, (length - rows) // 2, length - rows}):
        np.testing.assert_allclose(run(tiled, seed, first), whole[:, :, first : first + rows], rtol=1e-4, atol=1e-4)


def test_whole_kernels_and_rows_without_padding_are_left():
    whole = tile_reduction(convolution(8, 60, 3, 4), frozenset(), MACHINE)
    assert unswitch_guards(whole.kernel) is whole.kernel
    assert not all_of(tiled_rows(convolution(8, 60, 1, 1), 6).body, IfThenElse)
