"""Match windows that slide over planes in a kernel: for rules/sliding_window.py.

result[c, y, x] = max over i, j of data[c, 2 y + i, 2 x + j]               rows: 2 y + i, columns: 2 x + j
"""

from __future__ import annotations

from dataclasses import dataclass

from tvm import sym
from tvm.ir import Expr, TensorLoad, Var
from tvm.tirx import IntImm, PrimFunc

from ...tir.expressions import loads, replaced, uses, with_loads
from ...tir.index_grid import Unknown
from ...tir.loop_nests import are_axes, blocks_of, simple

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


class Plane:
    """Match a kernel of optional padding, a window reduction, and an optional element-wise epilogue.

    The windows slide along `y` and `x` of the result, `height` by `width`, of `dtype`, for each value of the axes in `outer`; over
    `data` at `indices`, of which the last two are by `rows` and `columns`. Several results of an axis in `filters` read one
    plane, axes in `summed` add several planes. Raises Unknown for another kernel.
    """

    def __init__(self, kernel: PrimFunc):
        self.original = kernel
        blocks = blocks_of(kernel)
        places = [number for number, block in enumerate(blocks) if block.init is not None]
        if len(places) != 1 or len(blocks) > 3 or places[0] > 1 or len(blocks) - places[0] > 2:
            raise Unknown("more than padding, a window and an epilogue")
        self.padding = blocks[0] if places[0] == 1 else None
        self.window, self.last = blocks[places[0]], blocks[-1] if len(blocks) > places[0] + 1 else None
        self.result = kernel.params[-1]
        store = self.window.body
        self.dtype = str(store.buffer.ty.dtype)
        if self.dtype not in _DTYPES or str(store.value.ty.dtype) != self.dtype:
            raise Unknown(f"the window is {self.dtype}")
        axes = {axis.var: int(axis.dom.extent) for axis in self.window.iter_vars}
        written = [
            index if index in axes else plain for index, plain in zip(store.indices, simple(self.window, store.indices))
        ]
        if len(written) < 2 or not all(index in axes or isinstance(index, IntImm) for index in written):
            raise Unknown("the result is not indexed by axes")
        *self.outer, self.y, self.x = written
        if self.y not in axes or self.x not in axes:
            raise Unknown("the result has no plane")
        self.height, self.width = axes[self.y], axes[self.x]
        self.axes = axes
        self.data, self.indices = self._data()
        self.rows, self.columns = self._walk(self.indices[-2], self.y), self._walk(self.indices[-1], self.x)
        if not _is_zero(self.columns.start):
            raise Unknown("the window does not start at the first column")
        self._check()

    def epilogue(self, acc: Expr, indices: list[Expr]) -> Expr:
        """Build the result element at `indices` from its accumulator."""
        if self.last is None:
            return acc
        value = with_loads(self.last.body.value, self.window.body.buffer, acc)
        return replaced(value, dict(zip((axis.var for axis in self.last.iter_vars), indices)))

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

    @property
    def read_late(self) -> list[TensorLoad]:
        """List the epilogue's loads outside the window."""
        late = [] if self.last is None else loads(self.last.body.value)
        return [load for load in late if not load.source.same_as(self.window.body.buffer)]

    def _data(self) -> tuple[Var, list[Expr]]:
        """Return the one operand the windows slide over, and its indices."""
        read = [load for load in loads(self.window.body.value) if not load.source.same_as(self.window.body.buffer)]
        sliding = [load for load in read if uses(load, self.x)]
        if len(sliding) != 1:
            raise Unknown("the window does not slide over exactly one operand")
        self.by_row = any(uses(load, self.y) for load in read if load is not sliding[0])
        return sliding[0].source, simple(self.window, sliding[0].indices)

    def _walk(self, index: Expr, axis: Var) -> Walk:
        taps = [each.var for each in self.window.iter_vars if int(each.iter_type) == 2 and uses(index, each.var)]
        if len(taps) > 1:
            raise Unknown("an index depends on several window axes")
        linear = sym.detect_linear_equation(index, [axis, *taps])
        own = [each.var for each in self.window.iter_vars]
        constant = linear and all(isinstance(each, IntImm) for each in linear[:-1])
        if not constant or any(uses(linear[-1], var) for var in own):
            raise Unknown("an index is not start + axis · stride + tap · step")
        stride, *step = (int(each) for each in linear[:-1])
        stride = stride if self.axes[axis] > 1 else 1
        if stride < 1 or any(each < 1 for each in step):
            raise Unknown("the window slides backwards")
        if not taps:
            return Walk(stride, None, 1, 1, linear[-1])
        return Walk(stride, taps[0], self.axes[taps[0]], step[0], linear[-1])

    def _check(self) -> None:
        reduced = [each.var for each in self.window.iter_vars if int(each.iter_type) == 2 and self.axes[each.var] > 1]
        self.summed = [var for var in reduced if var not in (self.rows.tap, self.columns.tap)]
        if self.by_row and self.rows.taps > 1:
            raise Unknown("rows that share data have weights of their own")
        taps = self.rows.taps * self.columns.taps
        if taps < 2 or (taps > MOST_UNROLLED and self.columns.taps > _MOST_OF_ROW):
            raise Unknown("the window has one tap, or too many to unroll")
        if any(uses(index, var) for index in self.indices[:-2] for var in (self.y, self.x)):
            raise Unknown("the outer indices depend on the row or column")
        planes = [index for index in self.outer if isinstance(index, Var) and self.axes[index] > 1]
        self.filters = [var for var in planes if not any(uses(index, var) for index in self.indices[:-2])]
        if self.padding is not None and not self.data.same_as(self.padding.body.buffer):
            raise Unknown("the padding is not the window's operand")
        if self.last is not None:
            read = [load for load in loads(self.last.body.value) if load.source.same_as(self.window.body.buffer)]
            if any(int(axis.iter_type) != 0 for axis in self.last.iter_vars):
                raise Unknown("the epilogue is not element-wise")
            if not all(
                are_axes(self.last, simple(self.last, each))
                for each in [self.last.body.indices, *(load.indices for load in read)]
            ):
                raise Unknown("the epilogue is not element-wise")
        elif not self.window.body.buffer.same_as(self.result):
            raise Unknown("the window does not write the result")


def _is_zero(value: Expr) -> bool:
    return isinstance(value, IntImm) and int(value) == 0
