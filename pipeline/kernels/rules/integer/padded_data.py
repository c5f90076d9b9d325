"""Read the data of a sum of integer products, with its padding: which columns and rows are inside."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tvm import tirx
from tvm.ir import Expr, TensorLoad, Var
from tvm.tirx import BufferStore, For, IfThenElse, PrimFunc, Stmt

from ....tir.expressions import conjuncts, replaced, uses
from ....tir.index_grid import Unknown
from ....tir.loop_nests import int64, sequence
from ..line_buffer import loop_of
from .integer_sum import IntegerSum, moved

_VECTORIZED = 2
#: least lanes of a vector that is copied
_FEW = 4


class PaddedData(IntegerSum):
    """Hold the data of a sum: int16, less its zero point, with 0 as padding.

    `inside` is a value that is not padding, `border` the condition for it to be. Raises Unknown for other forms.
    """

    def __init__(self, kernel: PrimFunc, repackable: frozenset[int]):
        super().__init__(kernel, repackable)
        #: values of summed axes of extent 1
        self.units: dict[Var, Expr] = {var: int64(0) for var in self.summed if self.axes[var] == 1}
        self._read_padding()

    def _read_padding(self) -> None:
        self.border: Expr | None = None
        self.inside = self.value
        if self.padding is not None:
            self.border, self.inside = self.unpadded()

    def raw(self) -> TensorLoad:
        """Return the load of a value, by the axes of the sum."""
        axes = [axis.var for axis in self.padding.iter_vars] if self.padding is not None else list(self.axes)
        found = moved(self.inside, axes)
        if len(found) != 1:
            raise Unknown("the data is not a number less its zero point")
        return found[0] if self.padding is None else replaced(found[0], self._values(self.indices))

    def element(self, values: Mapping[Var, Expr], column: Expr) -> Expr:
        """Return a value that is not padding: `column` counts from the first one of the window of place 0."""
        indices = self._at(values, column)
        if self.padding is not None:
            return replaced(self.inside, self._values(indices))
        load = tirx.BufferLoad(self.data.source, indices)
        return replaced(self.value_of(load), {**self.units, **values})

    def row_inside(self, values: Mapping[Var, Expr]) -> Expr | None:
        """Return the condition for a row not to be padding, None if all are inside."""
        if self.padding is None:
            return None
        axis = self.padding.iter_vars[self.along].var
        rows = [each for each in conjuncts(self.border) if not uses(each, axis)]
        return tirx.all(*(replaced(each, self._values(self._at(values, int64(0)))) for each in rows)) if rows else None

    def columns(self) -> tuple[int, int]:
        """Return the first and the end of the columns that are not padding."""
        whole = self.span(self.axes[self.x])
        if self.border is None:
            return 0, whole
        low, high = self.unpadded_columns(self.border)
        return low, min(high, whole)

    def bands(self, size: int, made: Callable[[Expr, int, tuple[int, int]], Stmt]) -> list[Stmt]:
        """Build bands of `size` places by `made`: from its first place, its places, and its columns that are not padding.

        Bands without padding are a loop.
        """
        whole, rest = divmod(self.axes[self.x], size)
        low, high = self.columns()

        def inside(start: int, count: int) -> tuple[int, int]:
            span, first = self.span(count), start * self.stride
            begin = min(max(low - first, 0), span)
            return begin, max(min(high - first, span), begin)

        inner = [n for n in range(whole) if inside(n * size, size) == (0, self.span(size))]
        first, end = (inner[0], inner[-1] + 1) if inner else (whole, whole)
        if first + whole - end > 2:
            raise Unknown("the padding is wider than a band")
        alone = [(n * size, size) for n in (*range(first), *range(end, whole))] + (
            [(whole * size, rest)] if rest else []
        )
        parts = [made(int64(start), count, inside(start, count)) for start, count in alone]
        if first < end:
            band = Var("band", "int64")
            parts.append(loop_of(band, end - first, made((band + first) * size, size, (0, self.span(size)))))
        return parts

    def _at(self, values: Mapping[Var, Expr], column: Expr) -> list[Expr]:
        """Return the indices of a value of the data, or of its padded form."""
        own = {**self.units, **values, self.x: int64(0), **({} if self.tap is None else {self.tap: int64(0)})}
        indices = [replaced(index, own) for index in self.indices]
        indices[self.along] = indices[self.along] + column
        return indices

    def _values(self, indices: list[Expr]) -> dict[Var, Expr]:
        assert self.padding is not None
        return {axis.var: index for axis, index in zip(self.padding.iter_vars, indices)}


def in_vectors(first: int, end: int, most: int, stored: Callable[[Expr], BufferStore]) -> list[Stmt]:
    """Store from `first` up to `end` by vectors of at most `most` lanes: the last one overlaps, short rests are loops."""
    lanes = most
    while lanes > max(end - first, 1):
        lanes //= 2
    if lanes < _FEW:
        place = Var("place", "int64")
        return [loop_of(place, end - first, stored(place + first))] if first < end else []
    whole, rest = divmod(end - first, lanes)

    def vector(start: Expr) -> Stmt:
        lane = Var("lane", "int64")
        return For(lane, int64(0), int64(lanes), _VECTORIZED, stored(start + lane))

    number = Var("number", "int64")
    parts = [loop_of(number, whole, vector(number * lanes + first))]
    return [*parts, vector(int64(end - lanes))] if rest else parts


def guarded(condition: Expr | None, filled: list[Stmt], empty: list[Stmt]) -> Stmt:
    """Run `filled` if a row is not padding, else `empty`."""
    return sequence(filled) if condition is None else IfThenElse(condition, sequence(filled), sequence(empty))


def overlapped(var: Var, whole: int, size: int, made: Callable[[Expr], Stmt]) -> Stmt:
    """Loop over parts of `size` of a whole, made from their starts: the last one overlaps the one before.

    Starts are not the result of a minimum: TVM moves constants into these, and addresses of neighbours would not share theirs.
    """
    count, rest = divmod(whole, size)
    if not rest:
        return loop_of(var, count, made(var * size)) if count > 1 else made(int64(0))
    return loop_of(var, count + 1, made(var * size - tirx.floordiv(var, count) * (size - rest)))
