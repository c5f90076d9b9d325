"""Check which loops around a sum are interchanged, and that the sum stays the same."""

import numpy as np
import pytest

pytest.importorskip("tvm")

import tvm_ffi
from hypothesis import given, settings
from hypothesis import strategies as st
from tvm.script import tirx as T
from tvm.tirx import PrimFunc

from passfit.kernels.rules.tiles.hoist_places import hoist_places
from passfit.tir.rolled_loops import ROLLED

from ....profiles import examples
from ...te_kernels import run

pytestmark = pytest.mark.tvm


def guarded(channels: int, taps: int, dilation: int, ring: int, start: int) -> PrimFunc:
    """Sum taps of a row of a ring, but those before the first row."""

    @T.prim_func(private=True, s_tir=True)
    def main(
        data: T.Buffer((channels, ring), "float32"),
        weight: T.Buffer((channels, taps), "float32"),
        out: T.Buffer((4,), "float32"),
    ):
        for i in range(4):
            out[i] = T.float32(0)
        for c in range(channels):
            for k in range(taps):
                for i in T.unroll(4):
                    if k * dilation + i >= start:
                        out[i] = out[i] + data[c, (k * dilation + i) % ring] * weight[c, k]

    return main


def plain(channels: int, taps: int) -> PrimFunc:
    @T.prim_func(private=True, s_tir=True)
    def main(
        data: T.Buffer((channels, taps + 4), "float32"),
        weight: T.Buffer((channels, taps), "float32"),
        out: T.Buffer((4,), "float32"),
    ):
        for i in range(4):
            out[i] = T.float32(0)
        for c in range(channels):
            for k in range(taps):
                for i in T.unroll(4):
                    out[i] = out[i] + data[c, k + i] * weight[c, k]

    return main


def chosen_by_a_loop(channels: int, taps: int) -> PrimFunc:
    """Overwrite a result of its own in each step of a loop: its steps must keep their order."""

    @T.prim_func(private=True, s_tir=True)
    def main(data: T.Buffer((channels, taps), "float32"), out: T.Buffer((taps,), "float32")):
        for c in range(channels):
            for k in range(taps):
                if k >= 1:
                    out[k] = out[k - 1] + data[c, k]

    return main


def overwritten(channels: int, taps: int) -> PrimFunc:
    """Keep the value of the last step."""

    @T.prim_func(private=True, s_tir=True)
    def main(data: T.Buffer((channels, taps), "float32"), out: T.Buffer((1,), "float32")):
        for c in range(channels):
            for k in range(taps):
                if k < c:
                    out[0] = data[c, k] + T.float32(1)

    return main


def of_rows(channels: int, taps: int, held: int) -> PrimFunc:
    """Sum taps of rows of a ring, in blocks: the number of a call is the first row."""

    @T.prim_func(private=True, s_tir=True)
    def main(
        number: T.int32,
        ring: T.Buffer((held, channels), "float32"),
        weight: T.Buffer((channels, taps), "float32"),
        out: T.Buffer((4,), "float32"),
    ):
        for i in range(4):
            with T.sblock("start"):
                at = T.axis.spatial(4, i)
                out[at] = T.float32(0)
        for c, k in T.grid(channels, taps):
            for i in T.unroll(4):
                with T.sblock("sum"):
                    at, channel, tap = T.axis.remap("SRR", [i, c, k])
                    out[at] = out[at] + ring[(at + number + tap) % held, channel] * weight[channel, tap]

    return main


def test_the_loop_that_rows_of_a_ring_depend_on_goes_outside_its_blocks():
    after = hoist_places(of_rows(8, 9, 12)).script()
    assert after.index("for k in T.serial(9") < after.index("for c in range(8)") and ROLLED in after


def test_a_short_loop_stays_as_llvm_unrolls_it():
    short = of_rows(8, 3, 6)
    assert tvm_ffi.structural_equal(hoist_places(short), short)


@settings(max_examples=examples(10))
@given(st.integers(1, 9), st.integers(1, 12), st.integers(1, 20), st.integers(0, 40))
def test_the_sum_of_rows_is_the_same(channels, taps, held, number):
    kernel = of_rows(channels, taps, held)
    assert np.allclose(run(hoist_places(kernel), 0, number), run(kernel, 0, number), rtol=1e-4, atol=1e-4)


def test_the_loop_that_guards_depend_on_goes_outside():
    before, after = (each.script() for each in (guarded(16, 9, 2, 24, 2), hoist_places(guarded(16, 9, 2, 24, 2))))
    assert "for c, k in T.grid(16, 9)" in before and ROLLED not in before
    assert after.index("for k in T.serial(9") < after.index("for c in range(16)") and ROLLED in after


@settings(max_examples=examples(20))
@given(
    st.integers(1, 9),
    st.integers(1, 12),
    st.integers(1, 4),
    st.integers(1, 20),
    st.integers(0, 6),
    st.integers(0, 1 << 20),
)
def test_the_sum_is_the_same(channels, taps, dilation, ring, start, seed):
    kernel = guarded(channels, taps, dilation, ring, start)
    assert np.allclose(run(hoist_places(kernel), seed), run(kernel, seed), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "kernel",
    [plain(8, 20), chosen_by_a_loop(8, 20), overwritten(8, 20)],
    ids=["no guard", "results chosen by a loop", "overwritten"],
)
def test_other_loops_stay(kernel: PrimFunc):
    assert tvm_ffi.structural_equal(hoist_places(kernel), kernel)
