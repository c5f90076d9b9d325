"""Plan the fusion of each distinct module once: no target counts, so the searches of all targets share a plan."""

from __future__ import annotations

import hashlib

import tvm_ffi
from tvm.ir import GenericConst, IRModule
from tvm.tirx import PrimFunc

from ....support.result_store import shared_store
from ....tir.structural_key import structural_key
from ..fusion_barriers import is_kernel_call
from ..rules.dataflow import bindings_of
from .kernel_calls import CalledKernels
from .scheduled_plan import scheduled_plan


def existing_values(module: IRModule, called: CalledKernels, *, by_peak: bool, redo: float) -> frozenset[int]:
    """Return the existing values of `scheduled_plan`, stored under the key of the module."""

    def plan() -> list[int]:
        return sorted(scheduled_plan(module, called, by_peak=by_peak, redo=redo).exist)

    return frozenset(shared_store().get_or_make(f"plan {plan_key(module, called, by_peak, redo)}", plan))


def plan_key(module: IRModule, called: CalledKernels, *options: object) -> str:
    """Return 32 digits, the same in every process, for all a plan depends on: all but the values of constants.

    TVM's hash of `main` collides for graphs of different shapes, so the key adds its types, kernels and dataflow.
    """
    main = module["main"]
    kernels = {
        var.name_hint: structural_key(each) for var, each in module.functions.items() if isinstance(each, PrimFunc)
    }
    calls: list[object] = []
    for binding in bindings_of(main):
        calls.append(repr(binding.var.ty))
        if is_kernel_call(binding.value):
            callee, operands = binding.value.args[:2]
            calls.append((callee.name_hint, [isinstance(each, GenericConst) for each in operands.fields]))
    values = called.values
    dataflow = values.reads, values.nbytes, sorted(values.exist), sorted(values.outputs), sorted(called.bindings)
    hashed = tvm_ffi.structural_hash(main, map_free_vars=True, skip_tensor_content=True)
    return hashlib.sha256(repr((hashed, sorted(kernels.items()), calls, dataflow, options)).encode()).hexdigest()[:32]
