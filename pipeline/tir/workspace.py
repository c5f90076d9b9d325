"""Measure the scratch memory of a kernel while it runs."""

from __future__ import annotations

import math
from functools import lru_cache

import tvm
from tvm import s_tir, tirx
from tvm.ir import IRModule
from tvm.tirx import PrimFunc

from ..memory import ALIGNMENT
from ..memory.liveness import aligned
from .expressions import collect, dtype_bytes
from .lowering.flatten_buffers import flatten_buffers
from .lowering.float_differences import float_differences
from .lowering.strict_comparisons import strict_comparisons

_PARALLEL = 1


def workspace_bytes(kernel: PrimFunc, threads: int = 1) -> int:
    """Count the bytes the kernel allocates while it runs.

    They come from the workspace or (the smallest) from the stack. Measured after TVM's own storage rewriting; each
    allocation is rounded up to 64, as the library hands them out. Allocations in a parallel loop count once for each of
    `threads` threads.
    """
    if not held_bytes(kernel):
        return 0
    body = until_storage_rewrite(kernel).body
    parallel = [loop for loop in collect(body, tirx.For) if int(loop.kind) == _PARALLEL]
    shared = {each.buffer for loop in parallel for each in collect(loop.body, tirx.AllocBuffer)}
    allocated = [each.buffer for each in collect(body, tirx.AllocBuffer)]
    return sum(buffer_bytes(each) * (threads if each in shared else 1) for each in allocated)


@lru_cache(1 << 12)
def held_bytes(kernel: PrimFunc) -> int:
    """Sum the bytes of all buffers that the blocks of `kernel` allocate.

    This bounds its workspace for one thread, and equals it when all are in use at once. It avoids TVM's own passes,
    which take half a second for an unrolled kernel.
    """
    own = [buffer for block in collect(kernel.body, s_tir.SBlock) for buffer in block.alloc_buffers]
    return sum(map(buffer_bytes, [*own, *(each.buffer for each in collect(kernel.body, tirx.AllocBuffer))]))


def flattening_passes() -> list[tvm.transform.Pass]:
    """Return the passes of TVM's `default_s_tir_pipeline` (0.27) up to StorageRewrite, which decides the allocations."""
    return [
        s_tir.transform.CanonicalizeLoop(),
        s_tir.transform.LowerInitBlock(),
        s_tir.transform.PlanAndUpdateBufferAllocationLocation(),
        s_tir.transform.ConvertBlocksToOpaque(),
        compact_buffers,
        s_tir.transform.LowerMatchBuffer(),
        strict_comparisons,
        float_differences,
        s_tir.transform.StmtSimplify(),
        s_tir.transform.AnnotateIrregularLoop(),
        s_tir.transform.LowerOpaqueBlock(),
        flatten_buffers,
        tirx.transform.BF16ComputeLegalize(),
        tirx.transform.NarrowDataType(32),
        s_tir.transform.LoopPartition(),
        tirx.transform.VectorizeLoop(True),
        tirx.transform.StorageRewrite(),
    ]


@tirx.transform.prim_func_pass(opt_level=0, name="passfit.CompactBuffers")
def compact_buffers(function: PrimFunc, _module: IRModule, _context: tvm.transform.PassContext) -> PrimFunc:
    """Compact the buffers of a kernel as TVM does, unless that enlarges them: TVM's bounds of clamped extents are loose.

    Schedules count their workspace by the buffers they declare.
    """
    compacted = s_tir.transform.CompactBufferAllocation()(IRModule({"main": function}))["main"]
    return function if held_bytes(compacted) > held_bytes(function) else compacted


def until_storage_rewrite(kernel: PrimFunc) -> PrimFunc:
    """Run TVM's default CPU pipeline up to the pass that decides the allocations.

    The order is that of tvm.s_tir.pipeline.
    """
    target = tvm.target.Target("llvm")
    bound = kernel.with_attr("global_symbol", "main").with_attr("target", tvm.target.Target(target, host=target))
    return tvm.transform.Sequential(flattening_passes())(IRModule({"main": bound}))["main"]


def buffer_bytes(buffer: tirx.Buffer) -> int:
    """Return the bytes of a buffer, rounded up to the alignment."""
    return aligned(math.prod(int(extent) for extent in buffer.shape) * dtype_bytes(str(buffer.dtype)), ALIGNMENT)
