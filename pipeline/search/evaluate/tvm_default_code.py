"""Code size of `tvm-default`: its kernels as TVM schedules them, compiled by LLVM for the target."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from tvm.ir import IRModule
from tvm.tirx import PrimFunc

from ...codegen.elf import read_object
from ...codegen.objects import build_module
from ...passes.sequence.failures import failure_of
from ...support.result_store import shared_store
from ...support.temporary_folder import scratch_folder
from ...targets import Target
from ...tir.structural_key import structural_key
from .tvm_default import lowered_default

#: name of TVM's own pipeline from kernels to LLVM
_PIPELINE = "default"


def default_code(module: IRModule, target: Target, inputs: Sequence[str], outputs: Sequence[str]) -> int:
    """Return the bytes of text and read-only data of `tvm-default`, from the store if known.

    Excludes its weights, and the runtime that calls the kernels. Raises TVM's error if a kernel cannot be built.
    """
    kernels = lowered_default(module, inputs, outputs).kernels
    if not kernels:
        return 0
    asked = repr(
        ([(name, structural_key(kernels[name])) for name in sorted(kernels)], sorted(target.tvm_config().items()))
    )
    key = hashlib.sha256(asked.encode()).hexdigest()[:32]
    return shared_store().get_or_make(f"default code {key}", lambda: _build_and_count(kernels, target))


def _build_and_count(kernels: Mapping[str, PrimFunc], target: Target) -> int:
    with scratch_folder() as folder:
        path = folder / "kernels.o"
        build_module(kernels, target.tvm_config(), _PIPELINE).write_to_file(str(path), "o")
        return read_object(path.read_bytes()).read_only_bytes()


def default_code_task(
    module: IRModule, target: Target, inputs: Sequence[str], outputs: Sequence[str]
) -> Callable[[], int]:
    """Return the task `default_code`, for a background process; the kernels are lowered at once, as the search asks for them too."""
    try:
        lowered_default(module, inputs, outputs)
    except Exception as error:  # the task will fail too, for an unknown size
        if failure_of(error) is None:
            raise
    return partial(default_code, module, target, inputs, outputs)
