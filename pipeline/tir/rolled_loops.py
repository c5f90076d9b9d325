"""Mark the loops over taps that LLVM must not unroll: unrolled, scalars of several steps wait in registers.

for c, i:                                  for j in 0…3, unrolled: 12 sums, 4 vectors and 5 columns of data at once;
    for j: acc[…] += data[j] · weight[j]   AVX2 has 16 registers, and sums went to memory after each step
"""

from __future__ import annotations

import tvm_ffi
from tvm.tirx import Add, BufferStore, For, IntImm, Mul, PrimFunc, Stmt

from .expressions import collect, is_one
from .loop_nests import with_fields

#: annotation of a marked loop
ROLLED = "passfit.rolled"
#: most steps of a loop that LLVM unrolls as a whole
MOST_STEPS = 16
#: most places in a ring, of all steps and rows, of such a loop: a larger one stays, with the remainders in it (seen: 12, 20)
MOST_PLACES = 16
_SERIAL = 0


def with_rolled_taps(kernel: PrimFunc) -> PrimFunc:
    """Mark the innermost serial loops of a tile's sums. Steps that differ, as at padding, branch: that costs less."""

    def mark(loop: For) -> For:
        if int(loop.kind) != _SERIAL or not isinstance(loop.extent, IntImm) or not 1 < int(loop.extent) <= MOST_STEPS:
            return loop
        if _has_serial_loop(loop.body) or not _sums(loop.body):
            return loop
        return with_fields(loop, annotations={**loop.annotations, ROLLED: 1})

    return kernel.with_body(tvm_ffi.structural_map(kernel.body, (For, mark)))


def is_rolled(loop: For) -> bool:
    return ROLLED in loop.annotations


def _has_serial_loop(stmt: Stmt) -> bool:
    """Return whether a serial loop of several steps is in a statement."""
    return any(int(loop.kind) == _SERIAL and not is_one(loop.extent) for loop in collect(stmt, For))


def _sums(stmt: Stmt) -> bool:
    """Return whether a store inside adds a product to its own element."""
    values = (store.value for store in collect(stmt, BufferStore))
    return any(isinstance(total, Add) and isinstance(total.b, Mul) for total in values)
