"""Copy bytes of bands to lines, with their zero point as padding.

    lines[i, column · C + c] = x, or its zero point as padding

Columns of padding are counted as the kernel runs, so that code is for one size of bands only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tvm import sym, tirx
from tvm.ir import Expr, TensorLoad, Var
from tvm.tirx import BufferStore, For, IntImm, Stmt

from .....tir.expressions import uses
from .....tir.loop_nests import int64, sequence
from ..loops import guarded, in_vectors, vector
from ..sum_builder import Axes, SumBuilder

_SERIAL = 0
#: the difference of int8 and uint8
_SIGN = 128
#: lanes that fill the lines, the most that divide the channels: the first of vectors
_FILLED = (16, 8, 4, 2, 1)


class ByteLines(SumBuilder):
    """Hold the `lines` of a sum of bytes, of the row's dtype. Raises NoMatch for other forms."""

    lines: Var

    def read_bytes(self) -> None:
        """Read the dtype and the zero point of the data. Raises NoMatch for others than bytes."""
        zero, self.dtype = self.bytes_()
        #: whether lines are offset
        self.flipped = self.row.values not in ("", self.dtype)
        offset = _SIGN * self.flipped * (1 if self.dtype == "int8" else -1)
        #: the zero point of the data in lines: its number, or an expression
        self.zero = int(zero) + offset if isinstance(zero, IntImm) else zero.astype("int32") + offset
        moving = [index for index in self.raw().indices if uses(index, self.x)] or self.raw().indices
        #: whether the call of the kernel chooses columns: they may be a ring then, and are no neighbours
        self.chosen = any(uses(index, param) for index in moving for param in self.original.params)

    def fill_lines(self, axes: Sequence[Var], outer: dict[Var, Expr], start: Expr, count: int) -> Stmt:
        """Fill the lines of a band of places, rows along `axes`."""
        rows, vectors = self.loops_over(axes), self.row.vectors
        span, edges = self.span(count), self.columns()
        first, end = (
            tirx.min(tirx.max(int64(edge) - start * self.stride, 0), int64(span)) * self.channels for edge in edges
        )
        lanes = next(each for each in _FILLED[not vectors :] if self.channels % each == 0)

        def part(first: Expr, end: Expr, lanes: int, value: Callable[[Expr], Expr]) -> list[Stmt]:
            def stored(at: Expr) -> BufferStore:
                return BufferStore(self.lines, value(at), [*rows.values(), at])

            count = sym.Analyzer().simplify(tirx.floordiv(end - first, lanes))
            if isinstance(count, IntImm) and not int(count):
                return []
            if isinstance(count, IntImm) and vectors:
                start, stop = (int(sym.Analyzer().simplify(each)) for each in (first, end))
                return in_vectors(start, stop, _FILLED[0], stored)
            place = Var("place", "int64")
            at = first + place * lanes
            body = vector(lanes, lambda lane: stored(at + lane)) if lanes > 1 else stored(at)
            return [For(place, int64(0), count, _SERIAL, body)]

        def copied(at: Expr) -> Expr:
            return self.lined({**outer, **rows}, start * self.stride, at).astype(str(self.lines.ty.dtype))

        def empty(_at: Expr) -> Expr:
            return self.padding_value()

        used, whole = int64(span * self.channels), int64(self.values_of(span))
        filled = [
            *part(int64(0), first, lanes, empty),
            *part(first, end, lanes, copied),
            *part(end, used, lanes, empty),
        ]
        body = guarded(self.row_inside({**outer, **rows}), filled, part(int64(0), used, lanes, empty))
        return self.nest(rows, sequence([body, *part(used, whole, 1, empty)]))

    def padding_value(self) -> Expr:
        """Return the zero point as lines hold it."""
        dtype = str(self.lines.ty.dtype)
        return tirx.const(self.zero, dtype) if isinstance(self.zero, int) else self.zero.astype(dtype)

    def lined(self, values: Axes, column: Expr, at: Expr) -> Expr:
        """Return the value `at` so many from a column, as lines hold it."""
        load = self.value_at(values, column, at)
        if not self.flipped:
            return load
        flipped = tirx.reinterpret("uint8", load) ^ tirx.const(_SIGN, "uint8")
        return flipped if self.row.values == "uint8" else tirx.reinterpret("int8", flipped)

    def value_at(self, values: Axes, column: Expr, at: Expr) -> TensorLoad:
        """Return the load of the value `at` so many from a column."""
        return self.raw_at(*self.on_line(values, column, at))
