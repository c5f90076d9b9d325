"""Leave buffers as large as all registers of AVX-512 on the stack: LLVM keeps accumulators there in registers.

TVM takes buffers of 1024 bytes and more, which are 16 of these 32 registers, from the workspace. LLVM leaves those in memory.
"""

from __future__ import annotations

import tvm_ffi
from tvm import tirx
from tvm.tirx import AllocBuffer, IntImm, PrimFunc

from ...targets.machine import WIDE_STACK
from ...targets.target import has_avx512
from ...tir.lowering.kernel_target import architecture_of, features_of, target_attributes
from ...tir.switches import switchable
from ...tir.workspace import buffer_bytes

#: annotation by which TVM's LowerTVMBuiltin leaves an allocation alone
_LEFT = "disable_lower_builtin"


@switchable
def keep_on_stack(kernel: PrimFunc) -> PrimFunc:
    """Mark allocations that fit the registers of AVX-512, on processors with it."""
    architecture = architecture_of(kernel)
    cpu = str(target_attributes(kernel).get("mcpu", ""))
    if architecture is None or not has_avx512(architecture, cpu, features_of(kernel)):
        return kernel

    def left(each: AllocBuffer) -> AllocBuffer:
        fixed = all(isinstance(extent, IntImm) for extent in each.buffer.shape)
        if not fixed or buffer_bytes(each.buffer) > WIDE_STACK:
            return each
        return AllocBuffer(each.buffer, annotations={**each.annotations, _LEFT: tirx.const(True)})

    return kernel.with_body(tvm_ffi.structural_map(kernel.body, (AllocBuffer, left)))
