"""Match windows that slide over planes in a kernel: for rules/sliding_window.py and rules/windows/.

result[c, y, x] = max over i, j of data[c, 2 y + i, 2 x + j]               rows: 2 y + i, columns: 2 x + j
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import tvm_ffi
from tvm import sym, tirx
from tvm.ir import Expr, TensorLoad, Var
from tvm.tirx import BufferStore, IntImm, PrimFunc

from ...tir.expressions import accumulation, conjuncts, is_choice, loads, replaced, uses
from ...tir.index_grid import NoMatch, holds_along
from ...tir.loop_nests import are_axes, int64, simple
from .fused_sum import FusedSum, assign
from .loop_peeling import has_skippable_padding

#: largest number of taps of a window whose rows are unrolled too, and of one row
MOST_UNROLLED, _MOST_OF_ROW = 64, 32
#: dtypes of sums and maxima with vectors on every target
_DTYPES = ("float32", "int32", "int8", "uint8")


@dataclass(frozen=True)
class Walk:
    """Affine index by an axis of the result and one of the window: start + axis · stride + tap · step."""

    stride: int
    tap: Var | None
    taps: int
    step: int
    start: Expr


class DataRow(NamedTuple):
    """Hold a data row: condition against padding, first and end real column, padding, element at a column."""

    inside: Expr | None
    first: int
    end: int
    zero: Expr
    element: Callable[[Expr], Expr]


class Plane(FusedSum):
    """Match a kernel of optional padding, a window reduction, and an optional element-wise epilogue.

    The windows slide along `y` and `x` of the result, `height` by `width`, of `dtype`, for each value of the axes in `outer`; over
    `data` at `indices`, of which the last two are by `rows` and `columns`. Several results of an axis in `filters` read one
    plane, axes in `summed` add several planes. Raises NoMatch for another kernel.
    """

    def __init__(self, kernel: PrimFunc):
        super().__init__(kernel)
        store = self.sum.body
        if self.dtype not in _DTYPES or str(store.value.ty.dtype) != self.dtype:
            raise NoMatch(f"the window is {self.dtype}")
        axes = self.axes
        if len(self.written) < 2:
            raise NoMatch("the result has no plane")
        *self.outer, self.y, self.x = self.written
        if self.y not in axes or self.x not in axes:
            raise NoMatch("the result has no plane")
        self.height, self.width = axes[self.y], axes[self.x]
        self.data, self.indices = self._data()
        if len(self.indices) < 2:
            raise NoMatch("the data have no plane")
        self.rows, self.columns = self._walk(self.indices[-2], self.y), self._walk(self.indices[-1], self.x)
        if getattr(self.columns.start, "value", None) != 0:
            raise NoMatch("the window does not start at the first column")
        self._check()
        self.loop_over(self.outer)

    @property
    def fits_accumulators(self) -> bool:
        """Return whether the epilogue may be computed in the accumulators before it is stored.

        It has to be of their dtype, and to read nothing past the end of the plane.
        """
        if self.last is None:
            return True
        if str(self.last.body.value.ty.dtype) != self.dtype:
            return False
        column = self.last.iter_vars[-1].var
        return not any(uses(load, column) for load in self.read_late)

    @cached_property
    def skips_padding(self) -> bool:
        """Return whether padding may be left out of a sum of products: one of its factors is 0."""
        return has_skippable_padding(self.sum, [] if self.padding is None else [self.padding])

    @cached_property
    def pools(self) -> bool:
        """Return whether the window combines its elements alone; padding, if there is any, then changes no result."""
        update, start = self.sum.body, self.sum.init.value
        found = accumulation(update)
        if found is None or not isinstance(found[1], TensorLoad):
            return False
        return self.padding is None or tvm_ffi.structural_equal(self.row_at(self.rows.start).zero, start)

    @property
    def needed(self) -> int:
        """Count the columns that a row of the result needs, padding included."""
        return (self.width - 1) * self.columns.stride + (self.columns.taps - 1) * self.columns.step + 1

    def count_of(self, rows: int) -> int:
        """Count the rows of the data, halo included, for so many rows of the result."""
        return (rows - 1) * self.rows.stride + (self.rows.taps - 1) * self.rows.step + 1

    def met_rows(self, number: int, count: int) -> list[tuple[int, int]]:
        """Return the rows of `count` that need a row of the data, each with its tap."""
        taps = [(row, divmod(number - row * self.rows.stride, self.rows.step)) for row in range(count)]
        return [(row, i) for row, (i, rest) in taps if rest == 0 and 0 <= i < self.rows.taps]

    def row_at(self, row: Expr) -> DataRow:
        """Read a row of the data. Raises NoMatch for padding of another form."""
        if self.padding is None:
            outer = [replaced(index, self.values) for index in self.indices[:-2]]
            zero = tirx.const(0, str(self.data.ty.dtype))
            return DataRow(None, 0, self.needed, zero, lambda column: tirx.BufferLoad(self.data, [*outer, row, column]))
        block = self.padding
        value = block.body.value
        if not is_choice(value):
            raise NoMatch("the padding is not a select")
        condition, inside, zero = value.args
        axes = [axis.var for axis in block.iter_vars]
        if not are_axes(block, list(block.body.indices)) or loads(zero):
            raise NoMatch("the padding is not indexed by its axes")
        y, x = axes[-2:]
        across = [each for each in conjuncts(condition) if uses(each, x)]
        along = [each for each in conjuncts(condition) if not uses(each, x)]
        if any(uses(each, var) for each in across for var in axes[:-1]):
            raise NoMatch("the column padding depends on other axes")
        values: dict[Var, Expr] = dict(zip(axes, (replaced(index, self.values) for index in self.indices[:-2])))
        values[y] = row
        extent = int(block.iter_vars[-1].dom.extent)
        there = np.flatnonzero(
            np.all([holds_along(each, x, extent) for each in across] or np.ones((1, extent)), axis=0)
        )
        if not len(there) or there[-1] - there[0] >= len(there):
            raise NoMatch("the unpadded columns are not one range")
        first, end = int(there[0]), int(there[-1]) + 1

        def element(column: Expr) -> Expr:
            return replaced(inside, {**values, x: column})

        row_there = [replaced(each, values) for each in along]
        return DataRow(tirx.all(*row_there) if row_there else None, first, min(end, self.needed), zero, element)

    def updated(
        self, acc: TensorLoad, taps: tuple[Expr | int, int], values: Mapping[Var, Expr], read: Expr
    ) -> BufferStore:
        """Combine an accumulator with the term of a tap, of the data `read`."""
        window = zip((self.rows.tap, self.columns.tap), taps)
        known = {var: int64(tap) if isinstance(tap, int) else tap for var, tap in window if var is not None}

        def load(each: TensorLoad) -> Expr:
            if each.source.same_as(self.sum.body.buffer):
                return acc
            return read if each.source.same_as(self.data) else each

        return assign(
            acc, tvm_ffi.structural_map(replaced(self.sum.body.value, {**values, **known}), (TensorLoad, load))
        )

    def result_at(self, values: Mapping[Var, Expr], row: Expr, column: Expr) -> list[Expr]:
        """Return the indices of an element of the result."""
        return [*(replaced(index, values) for index in self.outer), row, column]

    def _data(self) -> tuple[Var, list[Expr]]:
        """Return the one operand the windows slide over, and its indices."""
        read = [load for load in loads(self.sum.body.value) if not load.source.same_as(self.sum.body.buffer)]
        sliding = [load for load in read if uses(load, self.x)]
        if len(sliding) != 1:
            raise NoMatch("the window does not slide over exactly one operand")
        self.by_row = any(uses(load, self.y) for load in read if load is not sliding[0])
        return sliding[0].source, simple(self.sum, sliding[0].indices)

    def _walk(self, index: Expr, axis: Var) -> Walk:
        taps = [each.var for each in self.sum.iter_vars if int(each.iter_type) == 2 and uses(index, each.var)]
        if len(taps) > 1:
            raise NoMatch("an index depends on several window axes")
        linear = sym.detect_linear_equation(index, [axis, *taps])
        own = [each.var for each in self.sum.iter_vars]
        constant = linear and all(isinstance(each, IntImm) for each in linear[:-1])
        if not constant or any(uses(linear[-1], var) for var in own):
            raise NoMatch("an index is not start + axis · stride + tap · step")
        stride, *step = (int(each) for each in linear[:-1])
        stride = stride if self.axes[axis] > 1 else 1
        if stride < 1 or any(each < 1 for each in step):
            raise NoMatch("the window slides backwards")
        if not taps:
            return Walk(stride, None, 1, 1, linear[-1])
        return Walk(stride, taps[0], self.axes[taps[0]], step[0], linear[-1])

    def _check(self) -> None:
        reduced = [each.var for each in self.sum.iter_vars if int(each.iter_type) == 2 and self.axes[each.var] > 1]
        self.summed = [var for var in reduced if var not in (self.rows.tap, self.columns.tap)]
        if self.by_row and self.rows.taps > 1:
            raise NoMatch("rows that share data have weights of their own")
        taps = self.rows.taps * self.columns.taps
        if taps < 2 or (taps > MOST_UNROLLED and self.columns.taps > _MOST_OF_ROW):
            raise NoMatch("the window has one tap, or too many to unroll")
        if any(uses(index, var) for index in self.indices[:-2] for var in (self.y, self.x)):
            raise NoMatch("the outer indices depend on the row or column")
        planes = [index for index in self.outer if isinstance(index, Var) and self.axes[index] > 1]
        self.filters = [var for var in planes if not any(uses(index, var) for index in self.indices[:-2])]
        if self.padding is not None and not self.data.same_as(self.padding.body.buffer):
            raise NoMatch("the padding is not the window's operand")
