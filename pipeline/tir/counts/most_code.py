"""Bound the code of a scheduled kernel from its statements, without LLVM.

    for i in serial 48:                one body, or several: LLVM unrolls short loops
        for j in unrolled 4:           four bodies
            for v in vectorized 16:    two vectors of 8 lanes each
                y[i, j, v] = max(x[i, j, v], 0)

The bound is generous: PART bytes for each variable, constant, load and operation, indices included.
"""

from __future__ import annotations

from math import ceil

from tvm.s_tir import SBlockRealize
from tvm.tirx import BufferStore, For, IfThenElse, PrimFunc, SeqStmt, Stmt

from ...targets import Machine
from ..expressions import element_bytes, operation_cost, walk
from ..memoise import memoise_by_structure
from .loop_counts import UNROLLED, VECTORIZED, extent_of

#: bytes of code for each part of an expression, and for a kernel: of 1,580 kernels for x86-64, rpi4, visionfive2 and
#: beaglebone, code took 0.79 of the bound at most and 0.10 in the mean
_PART, _KERNEL = 6, 256
#: most parts of a loop that LLVM unrolls
_UNROLLED = 1000
#: parts of the head and the end of a loop
_LOOP = 4


@memoise_by_structure
def most_code(kernel: PrimFunc, machine: Machine) -> int:
    """Return bytes that the code of a kernel stays below."""
    return _KERNEL + _PART * _parts(kernel.body, machine, 1)


def _parts(stmt: Stmt, machine: Machine, lanes: int) -> int:
    """Count the parts of a statement's expressions, once for each vector; `lanes` are those of the vectorized loops around."""
    if isinstance(stmt, BufferStore):
        vector = max(1, machine.lanes * 4 // element_bytes(stmt.buffer))
        return ceil(lanes / vector) * _size(stmt)
    if isinstance(stmt, For):
        extent = extent_of(stmt.extent)
        if int(stmt.kind) == VECTORIZED:
            return _LOOP + _parts(stmt.body, machine, lanes * extent)
        body = _LOOP + _parts(stmt.body, machine, lanes)
        return extent * body if int(stmt.kind) == UNROLLED else max(body, min(extent * body, _UNROLLED))
    if isinstance(stmt, SeqStmt):
        return sum(_parts(each, machine, lanes) for each in stmt.seq)
    if isinstance(stmt, IfThenElse):
        cases = [each for each in (stmt.then_case, stmt.else_case) if each is not None]
        return _size(stmt.condition) + sum(_parts(each, machine, lanes) for each in cases)
    if isinstance(stmt, SBlockRealize):
        bodies = [each for each in (stmt.block.init, stmt.block.body) if each is not None]
        return sum(map(_size, stmt.iter_values)) + sum(_parts(each, machine, lanes) for each in bodies)
    inner = getattr(stmt, "body", None)
    return _LOOP + (_parts(inner, machine, lanes) if isinstance(inner, Stmt) else 0)


def _size(part: object) -> int:
    """Count the variables, constants, loads and operations; a function counts as its polynomial."""
    return sum(map(operation_cost, walk(part)))
