"""Schedule NT matrix products, whose operands both run along the sum in memory (queries by keys): rows become columns.

    result[…, i, j] = sum over k of one[…, i, k] · other[…, j, k]

    for … planes, 16 columns j at a time (8 in less workspace):
        turned[k, 0:16] = other[…, j : j + 16, k]
        for … rows i, R at a time:
            acc[R, 0:16] = 0
            for k: acc[r, 0:16] += one[…, i + r, k] · turned[k, 0:16]
            result[…, i + r, j : j + 16] = epilogue(acc)

The last rows and columns overlap those before, unless less memory could then be shared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial

from tvm import tirx
from tvm.ir import Expr, TensorLoad, Var
from tvm.tirx import BufferStore, For, PrimFunc, Stmt

from ...targets import Machine
from ...tir.expressions import loads, replaced, uses
from ...tir.in_place.analysis import analyse_sharing
from ...tir.index_grid import NoMatch
from ...tir.inlining import inlined
from ...tir.loop_nests import buffer_of, int64, sequence
from ...tir.workspace import held_bytes
from .fused_sum import FusedSum, assign, block_start
from .line_buffer import loop_of
from .rule import RuleResult

_SERIAL, _REDUCE = 0, 2
#: lanes of the shortest vectors; fewest rows that pay for turning a block
_FEW, _ROWS = 4, 8


def nt_matmul(kernel: PrimFunc, repackable: frozenset[int], machine: Machine) -> Iterator[RuleResult]:
    """Yield the schedule of an NT matrix product: a Rule."""
    if machine.compact:
        return
    weights, lanes = frozenset(kernel.params[number] for number in repackable), machine.lanes
    while lanes >= _FEW and 2 * lanes >= machine.lanes:
        with suppress(NoMatch):
            made = _Turned(inlined(kernel), weights, machine, lanes).kernel()
            if analyse_sharing(made) == analyse_sharing(kernel):
                yield RuleResult(made, workspace=held_bytes(made))
        lanes //= 2


class _Turned(FusedSum):
    """Build the kernel: `row` and `column` are the axes of the result, `summed` that of the sum."""

    def __init__(self, kernel: PrimFunc, weights: frozenset[Var], machine: Machine, lanes: int):
        super().__init__(kernel)
        store, reduced = self.sum.body, [axis.var for axis in self.sum.iter_vars if int(axis.iter_type) == _REDUCE]
        if self.padding is not None or type(store.value).__name__ != "Add" or type(store.value.b).__name__ != "Mul":
            raise NoMatch("no sum of products")
        if loads(self.sum.init.value) or len(reduced) != 1:
            raise NoMatch("the sum continues, or is along several axes")
        (self.summed,) = reduced
        one, other = store.value.b.a, store.value.b.b
        if not all(isinstance(each, TensorLoad) and str(each.source.ty.dtype) == "float32" for each in (one, other)):
            raise NoMatch("the factors are not tensors of floats")
        if not self.written or self.written[-1] not in self.axes:
            raise NoMatch("the result has no columns")
        self.column = self.written[-1]
        self.one, self.other = (other, one) if uses(one, self.column) else (one, other)
        self.row = self._row(store, weights)
        self.lanes, rows = lanes, self.axes[self.row]
        if lanes > self.axes[self.column] or rows < _ROWS:
            raise NoMatch("few columns or rows")
        most = min(machine.registers_of(self.lanes) // 2, rows)
        self.count = -(-rows // -(-rows // most))
        self.turned = buffer_of("turned", (self.axes[self.summed], self.lanes), "float32")
        self.acc = buffer_of("acc", (self.count, self.lanes), "float32")
        self.loop_over(axis for axis in self.axes if axis not in (self.row, self.column, self.summed))

    def _row(self, store: BufferStore, weights: frozenset[Var]) -> Var:
        """Return the longest axis that moves the first operand alone."""
        for load in (self.one, self.other):
            if load.source in weights or load.source.same_as(store.buffer):
                raise NoMatch("an operand is repacked, or the sum itself")
            if (
                not load.indices
                or not load.indices[-1].same_as(self.summed)
                or any(uses(each, self.summed) for each in load.indices[:-1])
            ):
                raise NoMatch("an operand does not run along the sum")
        alone = [var for var in self.written if var in self.axes and uses(self.one, var) and not uses(self.other, var)]
        if uses(self.one, self.column) or not uses(self.other, self.column) or not alone:
            raise NoMatch("no rows by columns")
        row = max(alone, key=lambda var: self.axes[var])
        if any(sum(var.same_as(index) for index in self.written) > 1 for var in (row, self.column)):
            raise NoMatch("the result is a diagonal")
        return row

    def kernel(self) -> PrimFunc:
        width, height = self.axes[self.column], self.axes[self.row]
        columns, rows = Var("columns", "int64"), Var("rows", "int64")
        first = {self.column: block_start(columns, self.lanes, width), self.row: block_start(rows, self.count, height)}
        rows_of_block = loop_of(rows, -(-height // self.count), self._rows(first))
        stmt = loop_of(columns, -(-width // self.lanes), sequence([self._turn(first), rows_of_block]))
        return self.kernel_around(stmt, [self.turned, self.acc])

    def _turn(self, first: Mapping[Var, Expr]) -> Stmt:
        k, lane = Var("k", "int64"), Var("lane", "int64")
        value = replaced(self.other, {**self.values, self.column: first[self.column] + lane, self.summed: k})
        column = For(k, int64(0), int64(self.axes[self.summed]), _SERIAL, BufferStore(self.turned, value, [k, lane]))
        return For(lane, int64(0), int64(self.lanes), _SERIAL, column)

    def _rows(self, first: Mapping[Var, Expr]) -> Stmt:
        """Build the sums of a block of rows and columns."""
        k = Var("k", "int64")

        def added(row: int, lane: Expr, acc: TensorLoad) -> Stmt:
            factor = replaced(self.one, {**self.values, self.row: first[self.row] + row, self.summed: k})
            return assign(acc, acc + factor * tirx.BufferLoad(self.turned, [k, lane]))

        def stored(row: int, lane: Expr, acc: TensorLoad) -> Stmt:
            values = {**self.values, self.row: first[self.row] + row, self.column: first[self.column] + lane}
            return self.finished(acc, [replaced(index, values) for index in self.written])

        def each(store: Callable[[int, Expr, TensorLoad], Stmt]) -> list[Stmt]:
            return [self.vector([row], partial(store, row)) for row in range(self.count)]

        total = For(k, int64(0), int64(self.axes[self.summed]), _SERIAL, sequence(each(added)))
        return sequence([*each(lambda _, __, acc: assign(acc, self.sum.init.value)), total, *each(stored)])
