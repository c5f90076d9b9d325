"""Kernels → one object file for a target, by TVM and LLVM."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import tvm
from tvm.ir import IRModule
from tvm.tirx import PrimFunc
from tvm.tirx.compilation_pipeline import get_tir_pipeline, register_tir_pipeline

from ..targets import Target
from .vector_math import ready_for_vectors, with_vector_math

_PIPELINE = "passfit"


def build_object(kernels: Mapping[str, PrimFunc], target: Target, symbol: Callable[[str], str], path: Path) -> None:
    """Writes an ELF object to `path` with each kernel under `symbol(name)`; TVM adds `__tvm_ffi_` in front."""
    built = build_module({symbol(name): kernel for name, kernel in kernels.items()}, target.tvm_config())
    built.write_to_file(str(path), "o")


def build_module(
    kernels: Mapping[str, PrimFunc], machine: Mapping[str, object], pipeline: str = _PIPELINE
) -> tvm.runtime.Module:
    """The kernels under their names; `machine` is what TVM's LLVM target is made of, `pipeline` TVM's name of a way
    from kernels to what LLVM is given."""
    device = tvm.target.Target(machine)
    functions = {name: kernel.with_attr("global_symbol", name) for name, kernel in sorted(kernels.items())}
    return tvm.tirx.build(IRModule(functions), target=tvm.target.Target(device, host=device), pipeline=pipeline)


@tvm.tirx.transform.prim_func_pass(opt_level=0)
def _ready_for_vectors(function: PrimFunc, _module: IRModule, _context: tvm.transform.PassContext) -> PrimFunc:
    return ready_for_vectors(function)


@tvm.tirx.transform.prim_func_pass(opt_level=0)
def _vector_math(function: PrimFunc, _module: IRModule, _context: tvm.transform.PassContext) -> PrimFunc:
    return with_vector_math(function)


def _pipeline() -> tuple[object, object, object]:
    """TVM's way from kernels to what LLVM is given, with exponentials as arithmetic once loops are vectors."""
    lower, on_host, on_device = get_tir_pipeline("default")
    lower = tvm.transform.Sequential([_ready_for_vectors, lower])
    return lower, lambda: tvm.transform.Sequential([_vector_math, on_host()]), on_device


register_tir_pipeline(_PIPELINE, _pipeline)
