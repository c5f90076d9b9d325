"""Copy values of bands to lines, with padding: bytes as they are in memory, or numbers less their zero point.

    lines[i, column · C + c] = x, or its zero point as padding
    lines[i, column · C + c] = x less its zero point, int16, or 0

Columns of padding are known for each band, or counted as the kernel runs: so that code is for one size of bands only.
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


class Lines(SumBuilder):
    """Hold the `lines` of a sum, of the row's dtype; `zero` is the zero point of bytes in them. Raises NoMatch for other forms."""

    lines: Var
    zero: int | Expr | None = None

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

    def fill(
        self, axes: Sequence[Var], outer: dict[Var, Expr], start: Expr, count: int, inside: Sequence[int] | None = None
    ) -> Stmt:
        """Fill the lines of a band of places, rows along `axes`; `inside` bounds its columns that are not padding, if known."""
        rows, span, simplify = self.loops_over(axes), self.span(count), sym.Analyzer().simplify
        by_channels = next(each for each in _FILLED[not self.row.vectors :] if self.channels % each == 0)
        lanes, used, whole = self.row.fill_lanes or by_channels, span * self.channels, self.values_of(span)
        edges: Sequence[Expr | int] = inside or [
            tirx.min(tirx.max(int64(edge) - start * self.stride, 0), int64(span)) for edge in self.columns()
        ]
        bounds = [simplify(int64(0) + edge * self.channels) for edge in edges]
        first, end = (int(each) if isinstance(each, IntImm) else each for each in bounds)

        def part(low: Expr | int, high: Expr | int, value: Callable[[Expr], Expr]) -> list[Stmt]:
            def stored(at: Expr) -> BufferStore:
                return BufferStore(self.lines, value(at), [*rows.values(), at])

            if isinstance(low, int) and isinstance(high, int):
                return in_vectors(low, high, lanes, stored)
            place = Var("place", "int64")
            at = low + place * by_channels
            body = vector(by_channels, lambda lane: stored(at + lane)) if by_channels > 1 else stored(at)
            return [For(place, int64(0), simplify(tirx.floordiv(high - low, by_channels)), _SERIAL, body)]

        def copied(at: Expr) -> Expr:
            return self.lined({**outer, **rows}, start * self.stride, at)

        def empty(_at: Expr) -> Expr:
            return self.padding_value()

        after = [(end, whole)] if isinstance(end, int) else [(end, used), (used, whole)]
        padded = [stmt for low, high in [(0, first), *after] for stmt in part(low, high, empty)]
        body = guarded(self.row_inside({**outer, **rows}), part(first, end, copied), part(first, end, empty))
        return self.nest(rows, sequence([*padded, body]))

    def padding_value(self) -> Expr:
        """Return the padding as lines hold it."""
        dtype, zero = str(self.lines.ty.dtype), 0 if self.zero is None else self.zero
        return tirx.const(zero, dtype) if isinstance(zero, int) else zero.astype(dtype)

    def lined(self, values: Axes, column: Expr, at: Expr) -> Expr:
        """Return the value `at` so many from a column, as lines hold it."""
        if self.zero is None:
            return self.element(*self.on_line(values, column, at))
        load: Expr = self.value_at(values, column, at)
        if self.flipped:
            load = tirx.reinterpret("uint8", load) ^ tirx.const(_SIGN, "uint8")
            load = load if self.row.values == "uint8" else tirx.reinterpret("int8", load)
        return load.astype(str(self.lines.ty.dtype))

    def value_at(self, values: Axes, column: Expr, at: Expr) -> TensorLoad:
        """Return the load of the value `at` so many from a column."""
        return self.raw_at(*self.on_line(values, column, at))
