"""Compile kernels into object files for a target, by TVM and LLVM."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import tvm
from tvm.ir import IRModule
from tvm.tirx import PrimFunc

from ..errors import OutputError
from ..support.result_store import kept_bytes
from ..targets import Target, toolchain_version
from ..tir.structural_key import structural_key
from .bare.clang import compile_by_clang
from .llvm_pipelines import PACKED, RAW

#: threads that build objects: LLVM takes most of the time, and releases Python's lock
_THREADS = 2
#: largest object in bytes; weights are in other files
_LARGEST_OBJECT = 64 << 20


def build_object(kernels: Mapping[str, PrimFunc], target: Target, path: Path) -> None:
    """Write an ELF object to `path`, each kernel a function of pointers under its name; compiled once.

    Raises OSError, and OutputError under a small limit of file sizes (ulimit -f).
    """
    path.write_bytes(kept_bytes("objects", _key(kernels, target), lambda: _compile(kernels, target, path)))


def _key(kernels: Mapping[str, PrimFunc], target: Target) -> str:
    """Return 32 digits for all that an object depends on but the code of this package: names, kernels, target, compilers."""
    functions = [(name, structural_key(kernel)) for name, kernel in sorted(kernels.items())]
    compiler = (target.zig_target, target.zig_cpu, toolchain_version()) if target.bare else ()
    asked = repr((functions, sorted(target.llvm_config().items()), compiler))
    return hashlib.sha256(asked.encode()).hexdigest()[:32]


def _compile(kernels: Mapping[str, PrimFunc], target: Target, path: Path) -> bytes:
    if target.bare:
        compile_by_clang(build_module(kernels, target.llvm_config() | {"opt-level": 0}, RAW), target, path)
        return path.read_bytes()
    module = build_module(kernels, target.llvm_config(), RAW)
    if sys.platform != "linux":
        module.write_to_file(str(path), "o")
        return path.read_bytes()
    _refuse_short_files()
    # LLVM ends the process if it cannot write a file, so it writes to memory
    with os.fdopen(os.memfd_create("object"), "rb") as memory:
        module.write_to_file(f"/proc/self/fd/{memory.fileno()}", "o")
        return memory.read()


def _refuse_short_files() -> None:
    """Raise OutputError if the limit of file sizes is too low for objects; it holds in memory too."""
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    if soft != resource.RLIM_INFINITY and soft < _LARGEST_OBJECT:
        raise OutputError(
            f"Files are limited to {soft} bytes (ulimit -f); objects may have {_LARGEST_OBJECT}.", "Raise the limit."
        )


def build_objects(kernels: Mapping[str, PrimFunc], target: Target, folder: Path) -> list[Path]:
    """Write an ELF object of each kernel into `folder`, by name; deterministic.

    Objects are kept by content, so a changed model compiles the kernels that changed.
    """
    parts = [{name: kernels[name]} for name in sorted(kernels)] or [{}]
    paths = [folder / f"kernel{number}.o" for number in range(len(parts))]
    with ThreadPoolExecutor(_THREADS) as threads:
        list(threads.map(lambda part, path: build_object(part, target, path), parts, paths))
    return paths


def build_module(
    kernels: Mapping[str, PrimFunc], machine: Mapping[str, object], pipeline: str = PACKED
) -> tvm.runtime.Module:
    """Compile kernels, each under its name, into a TVM module.

    `machine` is the configuration of TVM's LLVM target, `pipeline` the name of a TIR pipeline registered with TVM; by
    default one whose functions TVM can call.
    """
    device = tvm.target.Target(machine)
    functions = {name: kernel.with_attr("global_symbol", name) for name, kernel in sorted(kernels.items())}
    return tvm.tirx.build(IRModule(functions), target=tvm.target.Target(device, host=device), pipeline=pipeline)
