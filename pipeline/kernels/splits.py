"""All ways to split the kernels of a program, worked out once for each structure."""

from __future__ import annotations

from tvm.s_tir import SBlockRealize
from tvm.tirx import For, IfThenElse, IntImm, PrimFunc, SeqStmt, Stmt

from ..graph import Splits
from ..passes.by_structure import by_structure
from .lowering import Lowered
from .partial_sum import sums_over
from .window import rows_of


def splits_of(lowered: Lowered) -> dict[str, Splits]:
    """How each kernel of the program can be split."""
    steps = {step.kernel: step for step in lowered.program.steps}
    return {name: _splits(lowered.kernels[name], len(step.writes)) for name, step in steps.items()}


@by_structure
def _splits(kernel: PrimFunc, results: int) -> Splits:
    work = iterations(kernel.body)
    if results != 1:
        return Splits((), (), work)
    *operands, result = kernel.params
    rows = [rows_of(kernel, axis) for axis, extent in enumerate(result.ty.shape) if int(extent) > 1]
    sums = [
        (number, axis)
        for number, operand in enumerate(operands)
        for axis, extent in enumerate(operand.ty.shape)
        if int(extent) > 1 and sums_over(kernel, number, axis)
    ]
    return Splits(tuple(each for each in rows if each is not None), tuple(sums), work)


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
