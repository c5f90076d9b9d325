"""Check that loops over taps are split where their rows come from elsewhere, and that they add up to the same."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("tvm")

import tvm_ffi
from hypothesis import given, settings
from hypothesis import strategies as st
from tvm.script import tirx as T
from tvm.tirx import For, PrimFunc, Select

from passfit.kernels.lower.split_taps import split_taps

from ...profiles import examples
from ..te_kernels import run

pytestmark = pytest.mark.tvm


def taps_of(taps: int, rows: int, held: int) -> PrimFunc:
    """Sum taps of rows, in a tile of so many; those from `held` on were just computed."""

    @T.prim_func(private=True, s_tir=True)
    def main(
        ring: T.Buffer((held, 8), "float32"),
        row: T.Buffer((rows + taps, 8), "float32"),
        weight: T.Buffer((taps, 8), "float32"),
        out: T.Buffer((rows, 8), "float32"),
    ):
        for i, x in T.grid(rows, 8):
            with T.sblock("start"):
                at, lane = T.axis.remap("SS", [i, x])
                out[at, lane] = T.float32(0)
        for j in range(taps):
            for i in T.unroll(rows):
                for x in T.vectorized(8):
                    with T.sblock("sum"):
                        at, lane, tap = T.axis.remap("SSR", [i, x, j])
                        out[at, lane] = out[at, lane] + weight[tap, lane] * T.Select(
                            at + tap >= held, row[at + tap - held, lane], ring[(at + tap) % held, lane]
                        )

    return main


def _all(kernel: PrimFunc, kind: type) -> list:
    found: list = []
    tvm_ffi.structural_walk(kernel.body, (kind, found.append))
    return found


def test_taps_of_the_ring_and_of_the_new_row_have_loops_without_choices():
    split = split_taps(taps_of(5, 1, 4))
    assert not _all(split, Select)
    assert [int(each.extent) for each in _all(split, For) if each.loop_var.name == "j"] == [4]


def test_taps_in_which_rows_of_a_tile_differ_are_alone():
    split = split_taps(taps_of(5, 3, 4))  # tap 0 and 1: of the ring; 2 and 3: of both; 4: new
    assert len(_all(split, Select)) == 2
    assert [int(each.extent) for each in _all(split, For) if each.loop_var.name == "j"] == [2]


@settings(max_examples=examples(10))
@given(st.integers(1, 7), st.integers(1, 4), st.integers(1, 6), st.integers(0, 99))
def test_the_sum_is_the_same(taps, rows, held, seed):
    kernel = taps_of(taps, rows, held)
    np.testing.assert_allclose(run(split_taps(kernel), seed), run(kernel, seed), rtol=1e-5, atol=1e-5)


def test_loops_without_choices_and_long_ones_are_left():
    for kernel in (taps_of(4, 1, 8), taps_of(40, 1, 20), taps_of(9, 8, 8)):
        assert split_taps(kernel) is kernel
