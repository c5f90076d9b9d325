"""Compare workspaces with TVM's allocations, rounded as the library hands them out."""

import pytest

pytest.importorskip("tvm")

from tvm import relax
from tvm.script import tirx as T

from passfit.kernels.rules.fuse_loops import fuse_loops
from passfit.tir.workspace import held_bytes, workspace_bytes

from ..kernels.programs import lowered, weight

pytestmark = pytest.mark.tvm


def _kernel(shape, body):
    (kernel,) = lowered([shape], body).kernels.values()
    return kernel


def test_a_kernel_without_intermediates_needs_none():
    assert workspace_bytes(_kernel((4, 5), relax.op.nn.relu)) == 0


def test_an_intermediate_tensor_is_counted_rounded_up():
    """Count exp of 5 × 5 float32, 100 bytes, and the row maxima and sums, 20 each."""
    assert workspace_bytes(_kernel((5, 5), relax.op.nn.softmax)) in (128 + 64 + 64, 128 + 64)


def test_the_padded_copy_and_the_result_before_its_epilogue_are_counted():
    def body(x):
        return relax.op.nn.relu(relax.op.nn.conv2d(x, weight(4, 2, 3, 3), padding=1))

    kernel = _kernel((1, 2, 8, 8), body)
    assert workspace_bytes(kernel) == 832 + 1024  # 2 × 10 × 10 and 4 × 8 × 8 float32, in units of 64
    assert workspace_bytes(fuse_loops(kernel)) <= 128


def test_no_pass_takes_more_than_a_kernel_declares():
    """TVM bounds clamped extents loosely: it would store 21 places a line of these 16."""

    @T.prim_func(private=True, s_tir=True)
    def kernel(x: T.Buffer((79,), "int16"), y: T.Buffer((7, 16), "int16")):
        line = T.sblock_alloc_buffer((30, 16), "int16")
        for band in range(7):
            first = T.min(T.max(band // 6 * 7 - band * 12, 0), 14)
            last = T.min(T.max(band // 6 * 7 + 79 - band * 12, 0), 14)
            for row, place in T.grid(30, first):
                line[row, place] = T.int16(0)
            for row, place in T.grid(30, last - first):
                line[row, first + place] = x[band * 12 - band // 6 * 7 + first + place]
            for row, place in T.grid(30, 16 - last):
                line[row, T.min(T.max(79 - (band * 12 - band // 6 * 7), 0), 14) + place] = T.int16(0)
            for place in range(16):
                y[band, place] = line[0, place] + line[29, place]

    assert workspace_bytes(kernel) <= held_bytes(kernel)
