"""Count the expression a kernel becomes once each intermediate value is computed where it is read.

    a = x * sigmoid(x)        one value, two reads of x
    b = a * sigmoid(a)        reads a twice: twice the expression of a

A value that is read twice doubles what lies behind it: a ladder of n such steps is a tree of 2**n. The count is exact,
and walks the graph once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import tvm_ffi
from tvm.ir import Call, Expr, TensorLoad, Var
from tvm.s_tir import SBlock
from tvm.tirx import BufferStore, IntImm, PrimFunc

#: operations that `kernels/vector_math.py` writes as a polynomial each
_FUNCTIONS = ("tirx.exp", "tirx.sigmoid", "tirx.tanh", "tirx.erf")
#: operations that one of them counts for
_FUNCTION_COST = 8


@dataclass(frozen=True)
class Store:
    """The value of one block: its own operations, and the buffers it reads, once for each read.

    Buffers are numbers: parameters first. `kept`: a sum, which is computed once however often it is read.
    """

    buffer: int
    operations: int
    reads: tuple[int, ...]
    kept: bool


@dataclass(frozen=True)
class Expansion:
    """The stores of a kernel in order; the first `operands` of its parameters are read, the others are its results."""

    operands: int
    results: int
    stores: tuple[Store, ...]

    def sizes(self, operands: Sequence[int]) -> tuple[list[int], int]:
        """The operations of each result's expression, and those of sums within, for operands of these sizes."""
        known = dict(enumerate(operands))
        kept = 0
        for store in self.stores:
            size = store.operations + sum(known.get(each, 0) for each in store.reads)
            if store.kept:
                kept, size = kept + size, 1
            known[store.buffer] = size
        return [known.get(self.operands + number, 1) for number in range(self.results)], kept


def expansion(kernel: PrimFunc, results: int) -> Expansion:
    """The expansion of an unscheduled kernel whose last `results` parameters are what it writes."""
    numbers: dict[Var, int] = {param: number for number, param in enumerate(kernel.params)}
    found: list[Store] = []

    def see(block: SBlock) -> None:
        stores: list[BufferStore] = []
        tvm_ffi.structural_walk(block.body, [(SBlock, lambda _: stores.clear()), (BufferStore, stores.append)])
        for store in stores:
            buffer = numbers.setdefault(store.buffer, len(numbers))
            reads = [load.source for load in _all(store.value, TensorLoad) if not load.source.same_as(store.buffer)]
            places = tuple(numbers.setdefault(each, len(numbers)) for each in reads)
            found.append(Store(buffer, _operations(store), places, block.init is not None))

    for block in _all(kernel.body, SBlock):
        if not _all(block.body, SBlock):
            see(block)
    return Expansion(len(kernel.params) - results, results, tuple(found))


def _operations(store: BufferStore) -> int:
    """Everything but loads, constants and plain indices."""
    plain = (TensorLoad, Var, IntImm)
    every = _all(store.value, Expr)
    calls = [each for each in every if isinstance(each, Call) and getattr(each.op, "name", "") in _FUNCTIONS]
    return sum(not isinstance(each, plain) for each in every) + (_FUNCTION_COST - 1) * len(calls) + 1


def _all(part: object, kind: type) -> list:
    found: list = []
    tvm_ffi.structural_walk(part, [(kind, found.append)])
    return found
