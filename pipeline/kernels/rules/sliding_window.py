"""Schedule sliding windows over planes (depthwise convolutions, poolings): rows copied into a padded line buffer.

    for … planes, bands of rows:
        lines[…] = the rows the band needs, with their padding; columns one stride apart side by side
        for … rows of the band, R at a time:
            acc[R, width] = start                          width: a multiple of the lanes, past the end of the plane
            for … window (unrolled; its rows are a loop for short code, or if there are many taps):
                acc[r, 0:8] += lines[r · stride + i, …] * weight[i, j]
            result[rows] = epilogue(acc)                   of the plane alone

Results past the end of the plane are not stored. So a plane of 7 × 7 runs in vectors of 8 lanes like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import tvm_ffi
from tvm import tirx
from tvm.ir import Expr, TensorLoad, Var
from tvm.tirx import BufferStore, For, IntImm, PrimFunc, Stmt

from ...memory import ALIGNMENT
from ...memory.liveness import aligned
from ...program import DTYPE_BYTES
from ...support.divisors import divisors
from ...targets import Machine
from ...tir.expressions import is_costly, loads, replaced
from ...tir.index_grid import Unknown
from ...tir.inlining import inlined
from ...tir.loop_nests import buffer_of, int64, kernel_of, sequence
from ...tir.rolled_loops import ROLLED
from ...tir.workspace import held_bytes
from .line_buffer import LineBuffer, loop_of
from .rule import RuleResult

_SERIAL, _VECTORIZED = 0, 2
#: bytes of the line buffer
_LINES = 3072
#: largest number of rows at a time that a tuning tries
_ROWS = 8

#: make the result element at some indices from its sum
_Made = Callable[[Expr, list[Expr]], Expr]


@dataclass(frozen=True)
class Lines:
    """Shape of the line-buffer loop over a plane.

    `at_once` vectors of each of `rows` rows are accumulated at a time; lines for `band` rows are copied at a time.
    """

    at_once: int
    rows: int
    band: int


def sliding_window(kernel: PrimFunc, machine: Machine = Machine(), lines: Lines | None = None) -> PrimFunc | None:
    """Schedule `kernel` by lines of its planes; None if the rule does not match, or not with `lines`.

    Element-wise producers have to be inlined (see `tir.inlining.inlined`).
    """
    try:
        return _ByLines(kernel, machine, lines).kernel()
    except Unknown:
        return None


def sliding_windows(kernel: PrimFunc, _repackable: frozenset[int], machine: Machine) -> Iterator[RuleResult]:
    """Yield the schedule of `kernel` by lines of its planes: a Rule."""
    with suppress(Unknown):
        slid = sliding_window(inlined(kernel), machine)
        if slid is not None:
            yield RuleResult(slid, workspace=held_bytes(slid))


def sliding_variants(kernel: PrimFunc, machine: Machine) -> list[Lines]:
    """List the `Lines` possible for `kernel`, the rule's own choice first; none if the rule does not match."""
    try:
        own = _ByLines(kernel, machine)
    except Unknown:
        return []
    most = machine.registers_of(own.lanes) - 2
    found = [Lines(own.at_once, own.height_at_once, own.band)]
    for at_once in divisors(own.chunks, most):
        for rows in [*divisors(own.height, min(most // at_once, _ROWS)), min(own.height_at_once, most // at_once)]:
            for band in (own.band, own.band // 2, own.height):
                found.append(Lines(at_once, rows, max(band // rows * rows, rows)))
    return list(dict.fromkeys(found))


def _as_it_is(acc: Expr, _indices: list[Expr]) -> Expr:
    return acc


class _ByLines(LineBuffer):
    """Build the kernel by padded lines.

    `at_once` vectors of each of `height_at_once` rows are accumulated at a time; the line buffer holds the lines for
    `band` rows of the result.
    """

    def __init__(self, kernel: PrimFunc, machine: Machine, lines: Lines | None = None):
        super().__init__(kernel, machine)
        if loads(self.window.init.value) or self.summed or self.filters:
            raise Unknown("the window continues a sum, or several share a plane")
        if lines is None:
            lines = self._few_lines(machine.registers_of(self.lanes) // 2)
        if self.chunks % lines.at_once or not 1 <= lines.rows <= lines.band <= self.height:
            raise Unknown("the lines do not fit the plane")
        self.at_once, self.height_at_once, self.band = lines.at_once, lines.rows, lines.band
        self.whole = lines.rows == self.height and not self.rolled
        self.lines, self.first_line = self.lines_of(self.band), self.kept(self.band).start
        self.acc = buffer_of("acc", (self.height_at_once, self.at_once * self.lanes), self.dtype)

    def _few_lines(self, most: int) -> Lines:
        """Choose lines with at most `most` accumulators and _LINES bytes of line buffer.

        In a streaming region, whose rows are few, both together take no more than registers do.
        """
        at_once = max(divisors(self.chunks, most if self.chunks <= most else most // 2))
        rows = min(most // at_once, self.height)
        line = self.columns.stride * self.phase_width * DTYPE_BYTES[str(self.data.ty.dtype)]
        if self.in_region:
            vectors = at_once * self.lanes * DTYPE_BYTES[self.dtype]
            taken = {
                n: aligned(self.count_of(n) * line, ALIGNMENT) + aligned(n * vectors, ALIGNMENT)
                for n in range(rows, 0, -1)
            }
            fitting = (n for n, nbytes in taken.items() if nbytes <= self.register_bytes)
            if (rows := next(fitting, 0)) == 0:
                raise Unknown("a line is too long for registers")
            return Lines(at_once, rows, rows)
        most = _LINES // line
        band = next((count for count in range(self.height, 0, -1) if self.count_of(count) <= most), None)
        if band is None:
            raise Unknown("a line is too long for the line buffer")
        # bands of equal height, and of whole steps of rows
        band = -(-self.height // -(-self.height // band))
        rows = min(rows, band)
        return Lines(at_once, rows, band // rows * rows)

    def kernel(self) -> PrimFunc:
        whole, rest = divmod(self.height, self.band)
        number = Var("band", "int64")
        body = [loop_of(number, whole, self._band(number * self.band if whole > 1 else int64(0), self.band))]
        if rest:
            body.append(self._band(int64(whole * self.band), rest))
        stmt = sequence(body)
        for axis, var in reversed(self.loops.items()):
            stmt = For(var, int64(0), int64(self.axes[axis]), _SERIAL, stmt)
        return kernel_of(self.original.params, [stmt], [self.lines, self.acc], self.original.attrs)

    def _band(self, start: Expr, count: int) -> Stmt:
        rows = min(self.height_at_once, count)
        whole, rest = divmod(count, rows)
        number = Var("rows", "int64")
        offset = number * rows if whole > 1 else int64(0)
        parts = [self.filled(self.lines, start, count), loop_of(number, whole, self._rows(start, offset, rows))]
        if rest:
            parts.append(self._rows(start, int64(whole * rows), rest))
        return sequence(parts)

    def _rows(self, start: Expr, offset: Expr, rows: int) -> Stmt:
        """Compute `rows` rows of a band, from `offset` on; peel the last vectors of a row if they reach past it."""
        groups, ragged = self.chunks // self.at_once, self.width % self.lanes != 0
        group = Var("group", "int64")
        parts = []
        if groups > ragged:
            chunk = group * self.at_once if groups > 1 else int64(0)
            parts.append(loop_of(group, groups - ragged, self._group(start, offset, chunk, rows)))
        if ragged:
            parts.append(self._group(start, offset, int64((groups - 1) * self.at_once), rows, last=True))
        return sequence(parts)

    def _group(self, start: Expr, offset: Expr, chunk: Expr, rows: int, last: bool = False) -> Stmt:
        parts = [self._each(range(rows), lambda row, at: self._start(row, at))]
        if self.rolled:
            number = Var("tap", "int64")
            parts.append(loop_of(number, self.rows.taps, sequence(self._taps(start, offset, chunk, rows, number))))
        else:
            parts += [each for i in range(self.rows.taps) for each in self._taps(start, offset, chunk, rows, int64(i))]
        parts.append(self._stored(start + offset, chunk, rows, last))
        return sequence(parts)

    def _taps(self, start: Expr, offset: Expr, chunk: Expr, rows: int, i: Expr) -> list[Stmt]:
        """Add the products of row `i` of the window."""
        met: Sequence[int] = range(rows)
        if self.whole and isinstance(i, IntImm):
            kept = self.kept(rows)
            met = [row for row in met if int(i) * self.rows.step + row * self.rows.stride in kept]
        return [
            self._each(met, partial(self._update, start, offset, chunk, i, j, self._product(i, j)))
            for j in (range(self.columns.taps) if met else ())
        ]

    def _product(self, i: Expr, j: int) -> Expr:
        """Return the value of the window's update at a tap, the same for all vectors."""
        taps = {var: value for var, value in ((self.rows.tap, i), (self.columns.tap, int64(j))) if var is not None}
        return replaced(self.window.body.value, {**self.values, **taps})

    def _each(self, rows: Sequence[int], made: Callable[[int, Expr], Stmt]) -> Stmt:
        parts = []
        for row in rows:
            for chunk in range(self.at_once):
                lane = Var("lane", "int64")
                parts.append(For(lane, int64(0), int64(self.lanes), _VECTORIZED, made(row, lane + chunk * self.lanes)))
        return sequence(parts)

    def _start(self, row: int, at: Expr) -> Stmt:
        assert isinstance(self.window.init, BufferStore)
        return BufferStore(self.acc, self.window.init.value, [int64(row), at])

    def _update(
        self, start: Expr, offset: Expr, chunk: Expr, i: Expr, j: int, product: Expr, row: int, at: Expr
    ) -> Stmt:
        column = j * self.columns.step
        line = offset * self.rows.stride + (i * self.rows.step + row * self.rows.stride - self.first_line)
        place = at + chunk * self.lanes + column // self.columns.stride

        def load(each: TensorLoad) -> Expr:
            if each.source.same_as(self.window.body.buffer):
                return tirx.BufferLoad(self.acc, [int64(row), at])
            if each.source.same_as(self.data):
                return tirx.BufferLoad(self.lines, [line, int64(column % self.columns.stride), place])
            return each

        update = replaced(tvm_ffi.structural_map(product, [(TensorLoad, load)]), {self.y: start + offset + row})
        return BufferStore(self.acc, update, [int64(row), at])

    def _stored(self, start: Expr, chunk: Expr, rows: int, last: bool) -> Stmt:
        """Store the epilogue of the accumulators inside the plane."""
        in_place = self._is_long and self.fits_accumulators
        parts = [self._made_in_place(start, chunk, rows)] if in_place else []
        made: _Made = _as_it_is if in_place else self.epilogue
        for row in range(rows):
            for number in range(self.at_once):
                partial = last and number == self.at_once - 1
                count = self.width - (self.chunks - 1) * self.lanes if partial else self.lanes
                if count == self.lanes or in_place or not self.fits_accumulators:
                    parts.append(self._store(start, chunk, row, number, count, made))
                    continue
                # compute whole vectors, store part of the last
                lane = Var("lane", "int64")
                at = [int64(row), lane + number * self.lanes]
                indices = [*map(self.outside, self.outer), start + row, at[1] + chunk * self.lanes]
                value = self.epilogue(tirx.BufferLoad(self.acc, at), indices)
                parts.append(For(lane, int64(0), int64(self.lanes), _VECTORIZED, BufferStore(self.acc, value, at)))
                parts.append(self._store(start, chunk, row, number, count, _as_it_is))
        return sequence(parts)

    def _made_in_place(self, start: Expr, chunk: Expr, rows: int) -> Stmt:
        """Compute the epilogue in the accumulators, vector by vector.

        The loop parts it from the sums: in one block, LLVM sums up one accumulator after the other, each for its function.
        """
        number, lane = Var("vector", "int64"), Var("lane", "int64")
        row, column = (
            tirx.floordiv(number, int64(self.at_once)),
            tirx.floormod(number, int64(self.at_once)) * self.lanes + lane,
        )
        indices = [*map(self.outside, self.outer), start + row, column + chunk * self.lanes]
        store = BufferStore(self.acc, self.epilogue(tirx.BufferLoad(self.acc, [row, column]), indices), [row, column])
        vector = For(lane, int64(0), int64(self.lanes), _VECTORIZED, store)
        return For(number, int64(0), int64(rows * self.at_once), _SERIAL, vector, annotations={ROLLED: 1})

    def _store(self, start: Expr, chunk: Expr, row: int, number: int, count: int, made: _Made) -> Stmt:
        lane = Var("lane", "int64")
        at = lane + number * self.lanes
        indices = [*map(self.outside, self.outer), start + row, at + chunk * self.lanes]
        store = BufferStore(self.result, made(tirx.BufferLoad(self.acc, [int64(row), at]), indices), indices)
        return For(lane, int64(0), int64(count), _VECTORIZED if count == self.lanes else _SERIAL, store)

    @property
    def _is_long(self) -> bool:
        """Return whether the epilogue has a function that takes many instructions."""
        return self.last is not None and not self.compact and is_costly(self.last.body.value)
