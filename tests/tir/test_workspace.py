"""Compare workspaces with TVM's allocations, rounded as the library hands them out."""

import pytest

pytest.importorskip("tvm")

import tvm
from tvm import relax, s_tir
from tvm.ir import IRModule
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
    def kernel(x: T.Buffer((T.int64(79),), "int16"), y: T.Buffer((T.int64(7), T.int64(16)), "int16")):
        line = T.sblock_alloc_buffer((T.int64(30), T.int64(16)), "int16")
        for band in range(T.int64(7)):
            for row in range(T.int64(30)):
                for place in range(
                    T.min(T.max(band // T.int64(6) * T.int64(7) - band * T.int64(12), T.int64(0)), T.int64(14))
                ):
                    line[row, place] = T.int16(0)
                for place in range(
                    T.min(
                        T.max(band // T.int64(6) * T.int64(7) + T.int64(79) - band * T.int64(12), T.int64(0)),
                        T.int64(14),
                    )
                    - T.min(T.max(band // T.int64(6) * T.int64(7) - band * T.int64(12), T.int64(0)), T.int64(14))
                ):
                    line[
                        row,
                        T.min(
                            T.max(T.int64(0) - (band * T.int64(12) - band // T.int64(6) * T.int64(7)), T.int64(0)),
                            T.int64(14),
                        )
                        + place,
                    ] = x[place]
                for place in range(
                    T.max(
                        T.int64(14)
                        - T.max(band // T.int64(6) * T.int64(7) + T.int64(79) - band * T.int64(12), T.int64(0)),
                        T.int64(0),
                    )
                ):
                    line[
                        row,
                        T.min(
                            T.max(T.int64(79) - (band * T.int64(12) - band // T.int64(6) * T.int64(7)), T.int64(0)),
                            T.int64(14),
                        )
                        + place,
                    ] = T.int16(0)
            for place in range(T.int64(16)):
                y[band, place] = line[T.int64(0), place] + line[T.int64(29), place] + x[place]

    assert workspace_bytes(kernel) <= held_bytes(kernel)
    assert held_bytes(_compacted(kernel)) > held_bytes(kernel)


def _compacted(kernel):
    """Compact the buffers where they are allocated, as TVM does."""
    here = s_tir.transform
    passes = [
        here.PlanAndUpdateBufferAllocationLocation(),
        here.ConvertBlocksToOpaque(),
        here.CompactBufferAllocation(),
    ]
    return tvm.transform.Sequential(passes)(IRModule({"main": kernel}))["main"]
