"""Define the pipelines from scheduled kernels to LLVM, registered with TVM by name.

`RAW` makes plain C functions of pointers, for libraries. `PACKED` makes functions that TVM calls in this process, to
measure and test kernels.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import tvm
from tvm import s_tir, tirx
from tvm.ir import IRModule
from tvm.tirx import PrimFunc
from tvm.tirx.compilation_pipeline import get_tir_pipeline, register_tir_pipeline

from ..tir.workspace import flattening_passes
from .bare.integer_clamps import clamp_as_integers
from .bare.vector_loops import vectorise_loops
from .checks.guard_kernel import drop_checks
from .expand.half_conversions import expand_half_conversions
from .expand.narrow_results import expand_narrow_results
from .expand.products import expand_products
from .expand.rolled_loops import hide_trip_counts
from .expand.separate_products import separate_products
from .expand.stack_buffers import keep_on_stack
from .expand.strided_loads import shuffle_strided_loads
from .expand.transposed_stores import transpose_stores
from .functions.raw_pointers import raw_pointers
from .nan_extremes import order_extremes
from .vector_math import expand_vector_math, ready_for_vectors

RAW, PACKED = "passfit", "passfit-packed"
#: rewrites of lowered kernels, in order
_REWRITES: tuple[Callable[[PrimFunc], PrimFunc], ...] = (
    expand_products, separate_products, expand_narrow_results, transpose_stores, shuffle_strided_loads,
    keep_on_stack, clamp_as_integers, order_extremes,
)  # fmt: skip


def lowering_passes() -> list[tvm.transform.Pass]:
    """Return the passes of TVM's `default_s_tir_pipeline` (0.27) that change kernels of CPUs, up to MakePackedAPI."""
    return [
        *flattening_passes(),
        _vector_loops,
        tirx.transform.VectorizeLoop(True),
        s_tir.transform.HoistIfThenElse(),
        tirx.transform.UnrollLoop(),
        s_tir.transform.RenormalizeSplitPattern(),
        tirx.transform.StmtSimplify(),
        tirx.transform.RemoveNoOp(),
        s_tir.transform.RewriteUnsafeSelect(),
        tirx.transform.CommonSubexprElim(),
        tirx.transform.VerifyMemory(),
    ]


@tirx.transform.prim_func_pass(opt_level=0)
def _ready_for_vectors(function: PrimFunc, _module: IRModule, _context: tvm.transform.PassContext) -> PrimFunc:
    return ready_for_vectors(drop_checks(function))


@tirx.transform.prim_func_pass(opt_level=0)
def _vector_loops(function: PrimFunc, _module: IRModule, _context: tvm.transform.PassContext) -> PrimFunc:
    return vectorise_loops(function)


@tirx.transform.prim_func_pass(opt_level=0)
def _vector_math(function: PrimFunc, _module: IRModule, _context: tvm.transform.PassContext) -> PrimFunc:
    return hide_trip_counts(expand_vector_math(expand_half_conversions(function)))


@tirx.transform.prim_func_pass(opt_level=0)
def _expand(function: PrimFunc, _module: IRModule, _context: tvm.transform.PassContext) -> PrimFunc:
    return reduce(lambda found, rewrite: rewrite(found), _REWRITES, function)


def _raw() -> tuple[object, object, object]:
    _, on_host, on_device = get_tir_pipeline("default")
    passes = [_ready_for_vectors, *lowering_passes(), raw_pointers, tirx.transform.BF16StorageLegalize()]
    return (
        tvm.transform.Sequential(passes),
        lambda: tvm.transform.Sequential([_vector_math, _expand, on_host()]),
        on_device,
    )


def _packed() -> tuple[object, object, object]:
    lower, on_host, on_device = get_tir_pipeline("default")
    lower = tvm.transform.Sequential([_ready_for_vectors, lower])
    return lower, lambda: tvm.transform.Sequential([_vector_math, _expand, on_host()]), on_device


register_tir_pipeline(RAW, _raw)
register_tir_pipeline(PACKED, _packed)
