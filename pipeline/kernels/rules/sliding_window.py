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

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from tvm import tirx
from tvm.ir import Expr, TensorLoad, Var
from tvm.tirx import BufferStore, For, IntImm, PrimFunc, Stmt

from ...memory import ALIGNMENT
from ...memory.liveness import aligned
from ...program import DTYPE_BYTES
from ...support.divisors import divisors
from ...targets import Machine
from ...tir.expressions import is_costly, loads
from ...tir.index_grid import NoMatch
from ...tir.inlining import inlined
from ...tir.loop_nests import buffer_of, int64, sequence
from ...tir.rolled_loops import ROLLED
from .fused_sum import assign, sum_rule, vector_loop
from .line_buffer import LineBuffer, loop_of

_SERIAL = 0
#: bytes of the line buffer
_LINES = 3072
#: largest number of rows at a time that a tuning tries
_ROWS = 8


@dataclass(frozen=True)
class Lines:
    """Shape of the line-buffer loop over a plane.

    `at_once` vectors of each of `rows` rows are accumulated at a time; lines for `band` rows are copied at a time.
    """

    at_once: int
    rows: int
    band: int


def sliding_window(kernel: PrimFunc, machine: Machine = Machine(), lines: Lines | None = None) -> PrimFunc:
    """Schedule `kernel` by lines of its planes. Raises NoMatch if the rule does not match, or not with `lines`.

    Element-wise producers have to be inlined (see `tir.inlining.inlined`).
    """
    return _ByLines(kernel, machine, lines).kernel()


@sum_rule
def sliding_windows(kernel: PrimFunc, machine: Machine) -> PrimFunc:
    """Schedule `kernel` by lines of its planes: a Rule."""
    return sliding_window(inlined(kernel), machine)


def sliding_variants(kernel: PrimFunc, machine: Machine) -> list[Lines]:
    """List the `Lines` possible for `kernel`, the rule's own choice first. Raises NoMatch if the rule does not match."""
    own = _ByLines(kernel, machine)
    most = machine.registers_of(own.lanes) - 2
    found = [Lines(own.at_once, own.height_at_once, own.band)]
    for at_once in divisors(own.chunks, most):
        for rows in [*divisors(own.height, min(most // at_once, _ROWS)), min(own.height_at_once, most // at_once)]:
            for band in (own.band, own.band // 2, own.height):
                found.append(Lines(at_once, rows, max(band // rows * rows, rows)))
    return list(dict.fromkeys(found))


class _ByLines(LineBuffer):
    """Build the kernel by padded lines.

    `at_once` vectors of each of `height_at_once` rows are accumulated at a time; the line buffer holds the lines for
    `band` rows of the result.
    """

    def __init__(self, kernel: PrimFunc, machine: Machine, lines: Lines | None = None):
        super().__init__(kernel, machine)
        if loads(self.sum.init.value) or self.summed or self.filters:
            raise NoMatch("the window continues a sum, or several share a plane")
        if lines is None:
            lines = self._few_lines(machine.registers_of(self.lanes) // 2)
        if self.chunks % lines.at_once or not 1 <= lines.rows <= lines.band <= self.height:
            raise NoMatch("the lines do not fit the plane")
        self.at_once, self.height_at_once, self.band = lines.at_once, lines.rows, lines.band
        whole = lines.rows == self.height and not self.rolled
        self.whole = whole and self.padding is not None and not self.in_region and self.skips_padding
        kept, dtype = self.kept(self.band), str(self.data.ty.dtype)
        self.lines = buffer_of("lines", (len(kept), self.columns.stride, self.phase_width), dtype)
        self.first_line = kept.start
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
                raise NoMatch("a line is too long for registers")
            return Lines(at_once, rows, rows)
        most = _LINES // line
        band = next((count for count in range(self.height, 0, -1) if self.count_of(count) <= most), None)
        if band is None:
            raise NoMatch("a line is too long for the line buffer")
        # bands of equal height, and of whole steps of rows
        band = -(-self.height // -(-self.height // band))
        rows = min(rows, band)
        return Lines(at_once, rows, band // rows * rows)

    def kernel(self) -> PrimFunc:
        bands = _in_blocks("band", self.height, self.band, self._band)
        return self.kernel_around(sequence(bands), [self.lines, self.acc])

    def _band(self, start: Expr, count: int) -> Stmt:
        rows = _in_blocks("rows", count, min(self.height_at_once, count), partial(self._rows, start))
        return sequence([self.filled(self.lines, start, count), *rows])

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
        parts = [self._each(range(rows), lambda row, at, acc: assign(acc, self.sum.init.value))]
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
            self._each(met, partial(self._update, start, offset, chunk, i, j))
            for j in (range(self.columns.taps) if met else ())
        ]

    def _each(self, rows: Sequence[int], store: Callable[[int, Expr, TensorLoad], Stmt]) -> Stmt:
        """Build a statement for each vector of some rows: of the row, the lane in all vectors, and its accumulator."""
        vectors = [(row, number) for row in rows for number in range(self.at_once)]
        return sequence([self._vector(row, number, self.lanes, partial(store, row)) for row, number in vectors])

    def _vector(self, row: int, number: int, columns: int, store: Callable[[Expr, TensorLoad], Stmt]) -> Stmt:
        def stored(at: Expr) -> Stmt:
            return store(at, tirx.BufferLoad(self.acc, [int64(row), at]))

        return vector_loop(columns, stored, number * self.lanes, whole=columns == self.lanes)

    def _update(
        self, start: Expr, offset: Expr, chunk: Expr, i: Expr, j: int, row: int, at: Expr, acc: TensorLoad
    ) -> Stmt:
        column = j * self.columns.step
        line = offset * self.rows.stride + (i * self.rows.step + row * self.rows.stride - self.first_line)
        place = at + chunk * self.lanes + column // self.columns.stride
        read = tirx.BufferLoad(self.lines, [line, int64(column % self.columns.stride), place])
        return self.updated(acc, (i, j), {**self.values, self.y: start + offset + row}, read)

    def _stored(self, start: Expr, chunk: Expr, rows: int, last: bool) -> Stmt:
        """Store the epilogue of the accumulators inside the plane."""

        def store(row: int, at: Expr, acc: TensorLoad) -> Stmt:
            indices = self.result_at(self.values, start + row, at + chunk * self.lanes)
            return BufferStore(self.result, acc if finished else self.epilogue(acc, indices), indices)

        in_place = self._is_long and self.fits_accumulators
        parts = [self._finish_all(start, chunk, rows)] if in_place else []
        for row in range(rows):
            for number in range(self.at_once):
                ragged = last and number == self.at_once - 1
                columns = self.width - (self.chunks - 1) * self.lanes if ragged else self.lanes
                # compute whole vectors, store part of the last
                finished = in_place or (columns < self.lanes and self.fits_accumulators)
                if finished and not in_place:
                    parts.append(
                        vector_loop(self.lanes, partial(self._finish, start, chunk, int64(row)), number * self.lanes)
                    )
                parts.append(self._vector(row, number, columns, partial(store, row)))
        return sequence(parts)

    def _finish_all(self, start: Expr, chunk: Expr, rows: int) -> Stmt:
        """Compute the epilogue in the accumulators, vector by vector.

        The loop parts it from the sums: in one block, LLVM sums up one accumulator after the other, each for its function.
        """
        number = Var("vector", "int64")
        row, first = tirx.floordiv(number, int64(self.at_once)), tirx.floormod(number, int64(self.at_once)) * self.lanes
        vector = vector_loop(self.lanes, lambda lane: self._finish(start, chunk, row, first + lane))
        return For(number, int64(0), int64(rows * self.at_once), _SERIAL, vector, annotations={ROLLED: 1})

    def _finish(self, start: Expr, chunk: Expr, row: Expr, at: Expr) -> Stmt:
        acc = tirx.BufferLoad(self.acc, [row, at])
        return assign(acc, self.epilogue(acc, self.result_at(self.values, start + row, at + chunk * self.lanes)))

    @property
    def _is_long(self) -> bool:
        """Return whether the epilogue has a function that takes many instructions."""
        return self.last is not None and not self.compact and is_costly(self.last.body.value)


def _in_blocks(name: str, extent: int, size: int, build: Callable[[Expr, int], Stmt]) -> list[Stmt]:
    """Build a loop over the blocks of `size`, from their first number on, and what is left after it."""
    whole, rest = divmod(extent, size)
    number = Var(name, "int64")
    blocks = [loop_of(number, whole, build(number * size if whole > 1 else int64(0), size))]
    return [*blocks, build(int64(whole * size), rest)] if rest else blocks
