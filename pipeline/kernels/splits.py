"""All ways to split the kernels of a program, worked out once for each structure."""

from __future__ import annotations

import tvm_ffi
from tvm.s_tir import SBlockRealize
from tvm.tirx import For, IfThenElse, IntImm, PrimFunc, SeqStmt, Stmt

from ..graph import Splits
from .lowering import Lowered
from .partial_sum import sums_over
from .window import rows_of

_KNOWN: dict[int, list[tuple[PrimFunc, Splits]]] = {}


def splits_of(lowered: Lowered) -> dict[str, Splits]:
    """How each kernel of the program can be split."""
    steps = {step.kernel: step for step in lowered.program.steps}
    return {name: _splits(lowered.kernels[name], len(step.writes)) for name, step in steps.items()}


def _splits(kernel: PrimFunc, results: int) -> Splits:
    known = _KNOWN.setdefault(tvm_ffi.structural_hash(kernel), [])
    for original, splits in known:
        if tvm_ffi.structural_equal(original, kernel):
            return splits
    splits = Splits((), (), iterations(kernel.body))
    if results == 1:
        *operands, result = kernel.params
        rows = [rows_of(kernel, axis) for axis, extent in enumerate(result.ty.shape) if int(extent) > 1]
        sums = [
            (number, axis)
            for number, operand in enumerate(operands)
            for axis, extent in enumerate(operand.ty.shape)
            if int(extent) > 1 and sums_over(kernel, number, axis)
        ]
        splits = Splits(tuple(each for each in rows if each is not None), tuple(sums), splits.work)
    known.append((kernel, splits))
    return splits


def iterations(stmt: Stmt, around: int = 1) -> int:
    """How often the innermost statements run; of a loop whose extent is not a constant, one iteration is counted."""
    if isinstance(stmt, For):
        return iterations(stmt.body, around * (int(stmt.extent) if isinstance(stmt.extent, IntImm) else 1))
    if isinstance(stmt, SeqStmt):
        return sum(iterations(part, around) for part in stmt.seq)
    if isinstance(stmt, SBlockRealize):
        return iterations(stmt.block.body, around)
    if isinstance(stmt, IfThenElse):
        return iterations(stmt.then_case, around) + (iterations(stmt.else_case, around) if stmt.else_case else 0)
    return around
