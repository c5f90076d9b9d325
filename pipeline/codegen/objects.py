"""Kernels → object files for a target, by TVM and LLVM."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import tvm
import tvm_ffi
from tvm.ir import IRModule
from tvm.tirx import PrimFunc, Stmt
from tvm.tirx.compilation_pipeline import get_tir_pipeline, register_tir_pipeline

from ..errors import OutputError
from ..targets import Target
from .vector_math import ready_for_vectors, with_vector_math

_PIPELINE = "passfit"


#: object files at most, each made in a thread of its own; the same on every machine, since bytes hang on it
_OBJECTS = 2
#: bytes of kernels' code at most; weights are in other files
_LARGEST_OBJECT = 64 << 20
#: statements an object file is worth: each repeats a kilobyte or two that kernels in one file share
_WORTH = 200


def build_object(kernels: Mapping[str, PrimFunc], target: Target, path: Path) -> None:
    """Writes an ELF object to `path` with each kernel under its name; TVM adds `__tvm_ffi_` in front.

    Raises OSError, and OutputError where files are limited to few bytes."""
    module = build_module(kernels, target.tvm_config())
    if sys.platform != "linux":
        module.write_to_file(str(path), "o")
        return
    _refuse_short_files()
    # LLVM ends this process where it cannot write a file, so it writes into memory
    with os.fdopen(os.memfd_create("object"), "rb") as memory:
        module.write_to_file(f"/proc/self/fd/{memory.fileno()}", "o")
        path.write_bytes(memory.read())


def _refuse_short_files() -> None:
    """Raise OutputError under a limit of file sizes, which counts in memory too, that an object may exceed."""
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    if soft != resource.RLIM_INFINITY and soft < _LARGEST_OBJECT:
        raise OutputError(
            f"Files are limited to {soft} bytes (ulimit -f); objects may have {_LARGEST_OBJECT}.", "Raise the limit."
        )


def build_objects(kernels: Mapping[str, PrimFunc], target: Target, folder: Path) -> list[Path]:
    """Writes ELF objects into `folder`, with each kernel under its name in one of them, the same for the same kernels."""
    groups = _groups(kernels)
    paths = [folder / f"kernels{number}.o" for number in range(len(groups))]
    with ThreadPoolExecutor(len(groups)) as threads:  # LLVM, which takes most of the time, runs without Python's lock
        list(threads.map(lambda group, path: build_object(group, target, path), groups, paths))
    return paths


def _groups(kernels: Mapping[str, PrimFunc]) -> list[dict[str, PrimFunc]]:
    """The kernels in groups that take about as long as each other: the largest first, each to where there is least."""
    sizes = {name: _statements(kernel) for name, kernel in kernels.items()}
    count = max(1, min(_OBJECTS, len(kernels), sum(sizes.values()) // _WORTH))
    groups: list[dict[str, PrimFunc]] = [{} for _ in range(count)]
    taken = [0] * count
    for name in sorted(kernels, key=lambda name: (-sizes[name], name)):
        least = taken.index(min(taken))
        groups[least][name] = kernels[name]
        taken[least] += sizes[name]
    return groups


def _statements(kernel: PrimFunc) -> int:
    count = 0

    def see(_: Stmt) -> None:
        nonlocal count
        count += 1

    tvm_ffi.structural_walk(kernel.body, [(Stmt, see)])
    return count


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
