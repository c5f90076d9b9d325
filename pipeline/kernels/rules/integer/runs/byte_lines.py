"""Copy bytes of bands to lines, with their zero point as padding.

    lines[i, column · C + c] = x, or its zero point as padding

Columns of padding are counted as the kernel runs, so that code is for one size of bands only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tvm import sym, tirx
from tvm.ir import Expr, TensorLoad, Var
from tvm.tirx import BufferStore, For, IntImm, Stmt

from .....tir.expressions import loads, uses
from .....tir.index_grid import Unknown
from .....tir.loop_nests import int64, sequence
from ..padded_data import PaddedData, guarded, in_vectors

_SERIAL, _VECTORIZED = 0, 2
#: the difference of int8 and uint8
_SIGN = 128
#: lanes that fill the lines, the most that divide the channels: the first on cores with vectors
_FILLED = (16, 8, 4, 2, 1)


class ByteLines(PaddedData):
    """Hold the `lines` of a sum of bytes; `c` is its axis of `channels` side by side, if any. Raises Unknown for other forms."""

    lines: Var
    c: Var | None
    channels: int
    #: the dtype of the lines, None for that of the data
    wanted: str | None = None
    #: whether the core has vectors of bytes
    vectors = False

    def read_bytes(self) -> None:
        """Read the dtype and the zero point of the data. Raises Unknown for others than bytes."""
        zero, value = _zero(self.inside)
        if not isinstance(value, tirx.Cast) or not isinstance(value.value, TensorLoad):
            raise Unknown("the data is not a number less its zero point")
        self.dtype = str(value.value.ty.dtype)
        if self.dtype not in ("int8", "uint8") or str(self.weight.source.ty.dtype) != "int8":
            raise Unknown("the factors are not bytes")
        #: whether lines are offset
        self.flipped = self.wanted not in (None, self.dtype)
        offset = _SIGN * self.flipped * (1 if self.dtype == "int8" else -1)
        #: the zero point of the data in lines: its number, or an expression
        self.zero = int(zero) + offset if isinstance(zero, IntImm) else zero.astype("int32") + offset
        moving = [index for index in self.raw().indices if uses(index, self.x)] or self.raw().indices
        #: whether the call of the kernel chooses columns: they may be a ring then, and are no neighbours
        self.chosen = any(uses(index, param) for index in moving for param in self.original.params)

    def fill_lines(self, axes: Sequence[Var], outer: dict[Var, Expr], start: Expr, count: int) -> Stmt:
        """Fill the lines of a band of places, rows along `axes`."""
        rows = {var: Var(var.name, "int64") for var in axes}
        span, (low, high) = self.span(count), self.columns()
        inside = [tirx.min(tirx.max(int64(edge) - start * self.stride, 0), int64(span)) for edge in (low, high)]
        lanes = next(each for each in _FILLED[not self.vectors :] if self.channels % each == 0)
        dtype = str(self.lines.ty.dtype)

        def part(first: Expr, end: Expr, lanes: int, value: Callable[[Expr], Expr]) -> list[Stmt]:
            count = sym.Analyzer().simplify(tirx.floordiv(end - first, lanes))
            if isinstance(count, IntImm) and not int(count):
                return []
            if isinstance(count, IntImm) and self.vectors:
                start, stop = (int(sym.Analyzer().simplify(each)) for each in (first, end))
                return in_vectors(
                    start, stop, _FILLED[0], lambda at: BufferStore(self.lines, value(at), [*rows.values(), at])
                )
            place, lane = Var("place", "int64"), Var("lane", "int64") if lanes > 1 else int64(0)
            at = first + place * lanes + lane
            stored: Stmt = BufferStore(self.lines, value(at), [*rows.values(), at])
            return [
                For(
                    place,
                    int64(0),
                    count,
                    _SERIAL,
                    For(lane, int64(0), int64(lanes), _VECTORIZED, stored) if lanes > 1 else stored,
                )
            ]

        def copied(at: Expr) -> Expr:
            return self.lined({**outer, **rows}, start * self.stride, at).astype(dtype)

        def empty(_at: Expr) -> Expr:
            return self.padding_value()

        first, end = (each * self.channels for each in inside)
        used, whole = int64(span * self.channels), int64(self._values_of(span))
        filled = [
            *part(int64(0), first, lanes, empty),
            *part(first, end, lanes, copied),
            *part(end, used, lanes, empty),
        ]
        body = guarded(self.row_inside({**outer, **rows}), filled, part(int64(0), used, lanes, empty))
        body = sequence([body, *part(used, whole, 1, empty)])
        for var, loop in reversed(rows.items()):
            body = For(loop, int64(0), int64(self.axes[var]), _SERIAL, body)
        return body

    def _values_of(self, columns: int) -> int:
        """Count the values of a line of so many columns."""
        return columns * self.channels

    def padding_value(self) -> Expr:
        dtype = str(self.lines.ty.dtype)
        return tirx.const(self.zero, dtype) if isinstance(self.zero, int) else self.zero.astype(dtype)

    def lined(self, values: dict[Var, Expr], column: Expr, at: Expr) -> Expr:
        """Return the value `at` so many from a column, as lines hold it."""
        load = self.raw_at(values, column, at)
        if not self.flipped:
            return load
        flipped = tirx.reinterpret("uint8", load) ^ tirx.const(_SIGN, "uint8")
        return flipped if self.wanted == "uint8" else tirx.reinterpret("int8", flipped)

    def raw_at(self, values: dict[Var, Expr], column: Expr, at: Expr) -> TensorLoad:
        """Return the load of the value `at` so many from a column."""
        channel = {} if self.c is None else {self.c: values.get(self.c, int64(0)) + tirx.floormod(at, self.channels)}
        moved = at if self.c is None else tirx.floordiv(at, self.channels)
        (load,) = (
            each
            for each in loads(self.element({**values, **channel}, column + moved))
            if each.source.same_as(self.raw().source)
        )
        return load


def _zero(value: Expr) -> tuple[Expr, Expr]:
    """Return the zero point taken from an expression, and the expression."""
    if isinstance(value, tirx.Sub):
        return value.b, value.a
    if isinstance(value, tirx.Add) and isinstance(value.b, IntImm):
        return tirx.const(-int(value.b), "int16"), value.a
    return tirx.const(0, "int16"), value
