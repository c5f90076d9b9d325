"""Compile kernels into object files for a target, by TVM and LLVM."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import tvm
from tvm.ir import IRModule
from tvm.tirx import PrimFunc

from ..errors import OutputError
from ..targets import Target
from ..tir.loop_nests import statement_count
from .bare.clang import compile_by_clang
from .llvm_pipelines import PACKED, RAW

#: most object files, each built in a thread of its own; fixed, since the library's bytes depend on it
_OBJECTS = 2
#: largest object in bytes; weights are in other files
_LARGEST_OBJECT = 64 << 20
#: fewest statements per object file: each file repeats a kilobyte or two that its kernels share
_WORTH = 200


def build_object(kernels: Mapping[str, PrimFunc], target: Target, path: Path) -> None:
    """Write an ELF object to `path`, each kernel a function of pointers under its name.

    Raises OSError, and OutputError under a small limit of file sizes (ulimit -f).
    """
    if target.bare:
        compile_by_clang(build_module(kernels, target.llvm_config() | {"opt-level": 0}, RAW), target, path)
        return
    module = build_module(kernels, target.llvm_config(), RAW)
    if sys.platform != "linux":
        module.write_to_file(str(path), "o")
        return
    _refuse_short_files()
    # LLVM ends the process if it cannot write a file, so it writes to memory
    with os.fdopen(os.memfd_create("object"), "rb") as memory:
        module.write_to_file(f"/proc/self/fd/{memory.fileno()}", "o")
        path.write_bytes(memory.read())


def _refuse_short_files() -> None:
    """Raise OutputError if the limit of file sizes is too low for objects; it holds in memory too."""
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    if soft != resource.RLIM_INFINITY and soft < _LARGEST_OBJECT:
        raise OutputError(
            f"Files are limited to {soft} bytes (ulimit -f); objects may have {_LARGEST_OBJECT}.", "Raise the limit."
        )


def build_objects(kernels: Mapping[str, PrimFunc], target: Target, folder: Path) -> list[Path]:
    """Write ELF objects into `folder`, each kernel in one of them; deterministic."""
    groups = _groups(kernels)
    paths = [folder / f"kernels{number}.o" for number in range(len(groups))]
    with ThreadPoolExecutor(len(groups)) as threads:  # LLVM takes most of the time, and releases Python's lock
        list(threads.map(lambda group, path: build_object(group, target, path), groups, paths))
    return paths


def _groups(kernels: Mapping[str, PrimFunc]) -> list[dict[str, PrimFunc]]:
    """Split the kernels into groups of about equal compile time: largest first, each to the smallest group."""
    sizes = {name: statement_count(kernel) for name, kernel in kernels.items()}
    count = max(1, min(_OBJECTS, len(kernels), sum(sizes.values()) // _WORTH))
    groups: list[dict[str, PrimFunc]] = [{} for _ in range(count)]
    taken = [0] * count
    for name in sorted(kernels, key=lambda name: (-sizes[name], name)):
        least = taken.index(min(taken))
        groups[least][name] = kernels[name]
        taken[least] += sizes[name]
    return groups


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
