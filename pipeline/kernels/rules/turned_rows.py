"""Schedule products of two tensors that both run along the sum in memory (queries by keys): rows turned into columns.

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

from collections.abc import Iterator
from contextlib import suppress

from tvm import tirx
from tvm.ir import Expr, TensorLoad, Var
from tvm.tirx import BufferStore, For, PrimFunc, Stmt

from ...targets import Machine
from ...tir.expressions import loads, replaced, uses, with_loads
from ...tir.in_place.analysis import analyse_sharing
from ...tir.index_grid import Unknown
from ...tir.inlining import inlined
from ...tir.loop_nests import are_axes, blocks_of, buffer_of, int64, kernel_of, sequence
from ...tir.workspace import held_bytes
from .line_buffer import loop_of
from .rule import RuleResult

_SERIAL, _VECTORIZED, _REDUCE = 0, 2, 2
#: lanes of the shortest vectors; fewest rows that pay for turning a block
_FEW, _ROWS = 4, 8


def turned_rows(kernel: PrimFunc, repackable: frozenset[int], machine: Machine) -> Iterator[RuleResult]:
    """Yield the schedule of `kernel` by turned rows: a Rule."""
    if machine.compact:
        return
    weights, lanes = frozenset(kernel.params[number] for number in repackable), machine.lanes
    while lanes >= _FEW and 2 * lanes >= machine.lanes:
        with suppress(Unknown):
            made = _Turned(inlined(kernel), weights, machine, lanes).kernel()
            if analyse_sharing(made) == analyse_sharing(kernel):
                yield RuleResult(made, workspace=held_bytes(made))
        lanes //= 2


class _Turned:
    """Build the kernel: `row` and `column` are the axes of the result, `summed` that of the sum."""

    def __init__(self, kernel: PrimFunc, weights: frozenset[Var], machine: Machine, lanes: int):
        self.original = kernel
        blocks = blocks_of(kernel)
        if len(blocks) > 2 or blocks[0].init is None or any(each.init is not None for each in blocks[1:]):
            raise Unknown("more than a sum and an epilogue")
        self.sum, self.last = blocks[0], blocks[1] if len(blocks) == 2 else None
        store, start = self.sum.body, self.sum.init.value
        self.axes = {axis.var: int(axis.dom.extent) for axis in self.sum.iter_vars}
        reduced = [axis.var for axis in self.sum.iter_vars if int(axis.iter_type) == _REDUCE]
        if (
            type(store.value).__name__ != "Add"
            or type(store.value.b).__name__ != "Mul"
            or loads(start)
            or len(reduced) != 1
        ):
            raise Unknown("no sum of products along one axis")
        (self.summed,) = reduced
        one, other = store.value.b.a, store.value.b.b
        if not all(isinstance(each, TensorLoad) and str(each.source.ty.dtype) == "float32" for each in (one, other)):
            raise Unknown("the factors are not tensors of floats")
        if not store.indices or store.indices[-1] not in self.axes:
            raise Unknown("the result is not indexed by axes")
        self.column = store.indices[-1]
        self.one, self.other = (other, one) if uses(one, self.column) else (one, other)
        self._check(store, weights)
        self.lanes, rows = lanes, self.axes[self.row]
        if lanes > self.axes[self.column] or rows < _ROWS:
            raise Unknown("few columns or rows")
        most = min(machine.registers_of(self.lanes) // 2, rows)
        self.count = -(-rows // -(-rows // most))
        self.turned = buffer_of("turned", (self.axes[self.summed], self.lanes), "float32")
        self.acc = buffer_of("acc", (self.count, self.lanes), "float32")

    def _check(self, store: BufferStore, weights: frozenset[Var]) -> None:
        for load in (self.one, self.other):
            if load.source in weights or load.source.same_as(store.buffer):
                raise Unknown("an operand is repacked, or the sum itself")
            if (
                not load.indices
                or not load.indices[-1].same_as(self.summed)
                or any(uses(each, self.summed) for each in load.indices[:-1])
            ):
                raise Unknown("an operand does not run along the sum")
        alone = [var for var in store.indices if var in self.axes and uses(self.one, var) and not uses(self.other, var)]
        if uses(self.one, self.column) or not uses(self.other, self.column) or not alone:
            raise Unknown("no rows by columns")
        self.row = max(alone, key=lambda var: self.axes[var])
        plain = all(index in self.axes or isinstance(index, tirx.IntImm) for index in store.indices)
        if not plain or any(sum(uses(index, var) for index in store.indices) > 1 for var in (self.row, self.column)):
            raise Unknown("the result is not indexed by axes")
        if self.last is None:
            if not store.buffer.same_as(self.original.params[-1]):
                raise Unknown("the sum is not the result")
            return
        own = [axis.var for axis in self.last.iter_vars]
        read = [load for load in loads(self.last.body.value) if load.source.same_as(store.buffer)]
        if any(int(axis.iter_type) == _REDUCE for axis in self.last.iter_vars) or len(own) != len(store.indices):
            raise Unknown("the epilogue is not element-wise")
        if not all(are_axes(self.last, each) for each in [self.last.body.indices, *(load.indices for load in read)]):
            raise Unknown("the epilogue is not element-wise")

    def kernel(self) -> PrimFunc:
        around = [axis.var for axis in self.sum.iter_vars if axis.var not in (self.row, self.column, self.summed)]
        self.values = {var: Var("plane", "int64") if self.axes[var] > 1 else int64(0) for var in around}
        columns, rows = (
            self._blocks("columns", self.axes[self.column], self.lanes),
            self._blocks("rows", self.axes[self.row], self.count),
        )
        self.first_column, self.first_row = columns[1], rows[1]
        stmt = loop_of(columns[0], columns[2], sequence([self._turn(), loop_of(rows[0], rows[2], self._rows())]))
        for var in reversed(around):
            if self.axes[var] > 1:
                stmt = For(self.values[var], int64(0), int64(self.axes[var]), _SERIAL, stmt)
        return kernel_of(self.original.params, [stmt], [self.turned, self.acc], self.original.attrs)

    def _blocks(self, name: str, extent: int, side: int) -> tuple[Var, Expr, int]:
        """Return the loop over blocks of an axis, the first element of each, and their number."""
        var, count = Var(name, "int64"), -(-extent // side)
        first = var * side
        return var, first if extent % side == 0 else tirx.min(first, int64(extent - side)), count

    def _turn(self) -> Stmt:
        k, lane = Var("k", "int64"), Var("lane", "int64")
        value = replaced(self.other, {**self.values, self.column: self.first_column + lane, self.summed: k})
        store = BufferStore(self.turned, value, [k, lane])
        return For(
            lane, int64(0), int64(self.lanes), _SERIAL, For(k, int64(0), int64(self.axes[self.summed]), _SERIAL, store)
        )

    def _rows(self) -> Stmt:
        """Build the sums of a block of rows and columns."""
        k = Var("k", "int64")
        started, added, stored = [], [], []
        for row in range(self.count):
            lane = Var("lane", "int64")
            acc = tirx.BufferLoad(self.acc, [int64(row), lane])
            factor = replaced(self.one, {**self.values, self.row: self.first_row + row, self.summed: k})
            product = factor * tirx.BufferLoad(self.turned, [k, lane])
            started.append(self._vector(BufferStore(self.acc, self.sum.init.value, acc.indices), lane))
            added.append(self._vector(BufferStore(self.acc, acc + product, acc.indices), lane))
            stored.append(self._vector(self._stored(row, lane, acc), lane))
        total = For(k, int64(0), int64(self.axes[self.summed]), _SERIAL, sequence(added))
        return sequence([*started, total, *stored])

    def _vector(self, store: Stmt, lane: Var) -> Stmt:
        own = Var("lane", "int64")
        return For(own, int64(0), int64(self.lanes), _VECTORIZED, replaced(store, {lane: own}))

    def _stored(self, row: int, lane: Expr, acc: TensorLoad) -> Stmt:
        values = {**self.values, self.row: self.first_row + row, self.column: self.first_column + lane}
        indices = [replaced(index, values) for index in self.sum.body.indices]
        made: Expr = acc
        if self.last is not None:
            own = {axis.var: index for axis, index in zip(self.last.iter_vars, indices)}
            made = replaced(with_loads(self.last.body.value, self.sum.body.buffer, acc), own)
        return BufferStore(self.original.params[-1], made, indices)
