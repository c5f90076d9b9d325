"""Count the operations of a kernel after full inlining.

    a = x * sigmoid(x)        one value, two reads of x
    b = a * sigmoid(a)        reads a twice: twice the expression of a

A value that is read twice doubles its expression: a ladder of n such steps is a tree of 2**n. The count is exact,
and walks the graph once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import tvm_ffi
from tvm.ir import Call, Expr, TensorLoad, Var
from tvm.s_tir import SBlock
from tvm.tirx import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    And,
    BufferStore,
    FloatImm,
    FloorDiv,
    FloorMod,
    IntImm,
    Not,
    Or,
    PrimFunc,
    Select,
)  # fmt: skip

from ...tir.expressions import operation_cost
from ...tir.memoise import memoise_by_structure

#: TVM's simplifier walks their operands twice: as they are, and under the condition they state
_STEERING = (And, Or, Not, EQ, NE, LT, LE, GT, GE, FloorDiv, FloorMod, Select)


@dataclass(frozen=True)
class BlockValue:
    """Value of one block: operations and reads.

    `reads` are pairs of buffer and weight, one per read; the weight doubles with each condition around the read.
    Buffers are numbered, parameters first. `kept`: a sum, computed once however often it is read.
    """

    buffer: int
    operations: int
    reads: tuple[tuple[int, int], ...]
    kept: bool


@dataclass(frozen=True)
class Expansion:
    """Stores of a kernel, in order.

    The first `operands` parameters are read, the last `results` are written.
    """

    operands: int
    results: int
    stores: tuple[BlockValue, ...]

    def sizes(self, operands: Sequence[int]) -> tuple[list[int], int]:
        """Count operations per result, and of all sums within, for operands of these sizes."""
        known = dict(enumerate(operands))
        kept = 0
        for store in self.stores:
            size = store.operations + sum(weight * known.get(buffer, 0) for buffer, weight in store.reads)
            if store.kept:
                kept, size = kept + size, 1
            known[store.buffer] = size
        return [known.get(self.operands + number, 1) for number in range(self.results)], kept


@memoise_by_structure
def expansion(kernel: PrimFunc, results: int) -> Expansion:
    """Expand an unscheduled kernel; its last `results` parameters are written."""
    numbers: dict[Var, int] = {param: number for number, param in enumerate(kernel.params)}
    found: list[BlockValue] = []
    blocks: list[SBlock] = []
    tvm_ffi.structural_walk(kernel.body, [(SBlock, blocks.append)])
    for block in blocks:
        if isinstance(block.body, BufferStore):  # else the root, or a form that cannot be inlined
            store = block.body
            reads: list[tuple[int, int]] = []
            operations = _read(store.value, 1, numbers, reads)
            buffer = numbers.setdefault(store.buffer, len(numbers))
            others = tuple((place, weight) for place, weight in reads if place != buffer)
            found.append(BlockValue(buffer, operations + 1, others, block.init is not None))
    return Expansion(len(kernel.params) - results, results, tuple(found))


def _read(expr: Expr, weight: int, numbers: dict[Var, int], reads: list[tuple[int, int]]) -> int:
    """Count the operations of `expr`; append its loads to `reads`, each with its weight."""
    if isinstance(expr, (Var, IntImm, FloatImm)):
        return 0
    if isinstance(expr, TensorLoad):
        reads.append((numbers.setdefault(expr.source, len(numbers)), weight))
        return sum(_read(index, weight, numbers, reads) for index in expr.indices)
    inner = 2 * weight if isinstance(expr, _STEERING) else weight
    cost = operation_cost(expr)
    if isinstance(expr, Select):
        branches = sum(_read(each, weight, numbers, reads) for each in (expr.true_value, expr.false_value))
        return weight * cost + branches + _read(expr.condition, inner, numbers, reads)
    return weight * cost + sum(_read(each, inner, numbers, reads) for each in _operands(expr))


def _operands(expr: Expr) -> list[Expr]:
    if isinstance(expr, Call):
        return [each for each in expr.args if isinstance(each, Expr)]
    return [getattr(expr, name) for name in ("a", "b", "value") if hasattr(expr, name)]
