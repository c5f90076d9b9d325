"""Kernels → one object file for a target, by TVM and LLVM."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import tvm
from tvm.ir import IRModule
from tvm.tirx import PrimFunc

from ..targets import Target
from .vector_math import with_vector_math


def build_object(kernels: Mapping[str, PrimFunc], target: Target, symbol: Callable[[str], str], path: Path) -> None:
    """Writes an ELF object to `path` with each kernel under `symbol(name)`; TVM adds `__tvm_ffi_` in front."""
    device = tvm.target.Target(target.tvm_config())
    functions = {
        symbol(name): with_vector_math(kernel).with_attr("global_symbol", symbol(name))
        for name, kernel in kernels.items()
    }
    module = IRModule(dict(sorted(functions.items())))
    built = tvm.tirx.build(module, target=tvm.target.Target(device, host=device))
    built.write_to_file(str(path), "o")
