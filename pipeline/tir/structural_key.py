"""Name a kernel by its structure: equal kernels share a key, whatever their names."""

from __future__ import annotations

import hashlib

import tvm_ffi
from tvm.tirx import IntImm, PrimFunc


def structural_key(kernel: PrimFunc, *others: object) -> str:
    """Return 32 digits, the same in every process, for a kernel and for `others`, told by their repr.

    TVM's hash alone collides for many kernels that differ in extents or offsets only, so the key adds their integers.
    """
    numbers: list[int] = []
    tvm_ffi.structural_walk(kernel, (IntImm, lambda each: numbers.append(each.value)))
    parts = (tvm_ffi.structural_hash(kernel), numbers, *others)
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:32]
