"""Name a kernel by its structure: equal kernels share a key, whatever their names."""

from __future__ import annotations

import hashlib
from functools import lru_cache

import tvm_ffi
from tvm.tirx import IntImm, PrimFunc

from .expressions import collect


def structural_key(kernel: PrimFunc, *others: object) -> str:
    """Return 32 digits, the same in every process, for a kernel and for `others`, identified by their repr.

    TVM's hash alone collides for many kernels that differ in extents or offsets only, so the key adds their integers.
    """
    parts = (*_parts(kernel), *others)
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:32]


@lru_cache(1 << 12)
def _parts(kernel: PrimFunc) -> tuple[int, list[int]]:
    """Return TVM's hash and all integers of a kernel, in order."""
    return tvm_ffi.structural_hash(kernel), [each.value for each in collect(kernel, IntImm)]
