"""Rule for windows that slide over planes (depthwise convolutions, poolings): rows of a plane in a small copy, padded.

    for … planes, bands of rows:
        lines[…] = the rows the band needs, with their padding; columns one stride apart side by side
        for … rows of the band, R at a time:
            acc[R, width] = start                          width: a multiple of the lanes, past the end of the plane
            for … window (unrolled):
                acc[r, 0:8] += lines[r · stride + i, …] * weight[i, j]
            result[rows] = epilogue(acc)                   of the plane alone

What is computed past the end of the plane is not stored. A plane of 7 × 7 is done in vectors of 8 like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
import tvm_ffi
from tvm import sym, tirx
from tvm.ir import Expr, TensorLoad, Var
from tvm.s_tir import SBlock, SBlockRealize
from tvm.tirx import And, BufferStore, For, IfThenElse, IntImm, PrimFunc, Stmt

from .expressions import loads, uses
from .grid import RoughGrid, Unknown
from .nests import blocks_of, sequence, simple
from .tile import LANES

_SERIAL, _VECTORIZED, _UNROLLED = 0, 2, 3
#: accumulators at a time, and bytes of lines
_ACCUMULATORS, _LINES = 8, 3072
_MOST_TAPS = 64


def slide(kernel: PrimFunc) -> PrimFunc | None:
    """`kernel`, whose element-wise producers are inlined (see `window.inlined`), by lines of its planes; None where the
    rule does not match."""
    try:
        return _Sliding(kernel).kernel()
    except Unknown:
        return None


@dataclass(frozen=True)
class _Walk:
    """How an index follows an axis of the result and one of the window: start + axis · stride + tap · step."""

    stride: int
    tap: Var | None
    taps: int
    step: int
    start: Expr


class _Sliding:
    """The parts of a kernel: padding, if any, the windows, and what is made of each element, if anything."""

    def __init__(self, kernel: PrimFunc):
        self.original = kernel
        blocks = blocks_of(kernel)
        places = [number for number, block in enumerate(blocks) if block.init is not None]
        if len(places) != 1 or len(blocks) > 3 or places[0] > 1 or len(blocks) - places[0] > 2:
            raise Unknown("more than padding, a window and what is made of it")
        self.padding = blocks[0] if places[0] == 1 else None
        self.window, self.last = blocks[places[0]], blocks[-1] if len(blocks) > places[0] + 1 else None
        self.result = kernel.params[-1]
        store = self.window.body
        if str(store.value.ty.dtype) != "float32" or str(store.buffer.ty.dtype) != "float32":
            raise Unknown("not of float32")
        axes = {axis.var: int(axis.dom.extent) for axis in self.window.iter_vars}
        written = [
            index if index in axes else plain for index, plain in zip(store.indices, simple(self.window, store.indices))
        ]
        if len(written) < 2 or not all(index in axes or isinstance(index, IntImm) for index in written):
            raise Unknown("results that are not by axes")
        *self.outer, self.y, self.x = written
        if self.y not in axes or self.x not in axes:
            raise Unknown("no plane")
        self.height, self.width = axes[self.y], axes[self.x]
        self.axes = axes
        self.data, self.indices = self._data()
        self.rows, self.columns = self._walk(self.indices[-2], self.y), self._walk(self.indices[-1], self.x)
        if not _is_zero(self.columns.start):
            raise Unknown("columns that do not begin at the first")
        self._check()

    def _data(self) -> tuple[Var, list[Expr]]:
        """The one operand that the windows slide over, and where they are."""
        read = [load for load in loads(self.window.body.value) if not load.source.same_as(self.window.body.buffer)]
        sliding = [load for load in read if uses(load, self.x) or uses(load, self.y)]
        if len(sliding) != 1:
            raise Unknown("more than one operand to slide over")
        return sliding[0].source, simple(self.window, sliding[0].indices)

    def _walk(self, index: Expr, axis: Var) -> _Walk:
        taps = [each.var for each in self.window.iter_vars if int(each.iter_type) == 2 and uses(index, each.var)]
        if len(taps) > 1:
            raise Unknown("an index by more than a window")
        linear = sym.detect_linear_equation(index, [axis, *taps])
        own = [each.var for each in self.window.iter_vars]
        if not linear or any(not isinstance(each, IntImm) for each in linear[:-1]) or any(uses(linear[-1], var) for var in own):
            raise Unknown("an index that is not start + axis · stride + tap · step")
        stride, *step = (int(each) for each in linear[:-1])
        stride = stride if self.axes[axis] > 1 else 1
        if stride < 1 or any(each < 1 for each in step):
            raise Unknown("windows that go backwards")
        return _Walk(stride, taps[0] if taps else None, self.axes[taps[0]] if taps else 1, step[0] if step else 1, linear[-1])

    def _check(self) -> None:
        reduced = [each for each in self.window.iter_vars if int(each.iter_type) == 2 and self.axes[each.var] > 1]
        if any(each.var not in (self.rows.tap, self.columns.tap) for each in reduced):
            raise Unknown("sums over more than the window")
        if self.rows.taps * self.columns.taps > _MOST_TAPS or self.rows.taps * self.columns.taps < 2:
            raise Unknown("a window that is no window, or too large to unroll")
        if any(uses(index, var) for index in self.indices[:-2] for var in (self.y, self.x)):
            raise Unknown("other planes further on")
        planes = [index for index in self.outer if isinstance(index, Var) and self.axes[index] > 1]
        if not all(any(uses(index, var) for index in self.indices[:-2]) for var in planes):
            raise Unknown("planes that several results are made of, each from lines of its own")
        if self.padding is not None and not self.data.same_as(self.padding.body.buffer):
            raise Unknown("padding of something else")
        if self.last is not None:
            read = [load for load in loads(self.last.body.value) if load.source.same_as(self.window.body.buffer)]
            own = [axis.var for axis in self.last.iter_vars]
            if any(int(axis.iter_type) != 0 for axis in self.last.iter_vars) or len(own) != len(self.last.body.indices):
                raise Unknown("another reduction")
            for indices in [self.last.body.indices, *(load.indices for load in read)]:
                found = simple(self.last, indices)
                if len(found) != len(own) or any(
                    not (index.same_as(var) or int(axis.dom.extent) == 1)
                    for index, var, axis in zip(found, own, self.last.iter_vars)
                ):
                    raise Unknown("a last step that is not by element")
        elif not self.window.body.buffer.same_as(self.result):
            raise Unknown("the result is written elsewhere")

    # --- the kernel

    def kernel(self) -> PrimFunc:
        chunks = -(-self.width // LANES)
        at_once = next(count for count in range(min(chunks, 4 if chunks > _ACCUMULATORS else _ACCUMULATORS), 0, -1) if chunks % count == 0)
        rows = max(1, min(_ACCUMULATORS // at_once, self.height))
        self.chunks, self.at_once = chunks, at_once
        self.phase_width = chunks * LANES + (self.columns.taps - 1) * self.columns.step // self.columns.stride
        line = self.columns.stride * self.phase_width * 4
        most = _LINES // line
        band = self.height
        while self._lines(band) > most:
            band -= 1
            if band < 1:
                raise Unknown("lines that are too long")
        if band < self.height:
            band = max(band // rows * rows, 1)
        rows = min(rows, band)
        self.lines = _buffer("lines", (self._lines(band), self.columns.stride, self.phase_width))
        self.acc = _buffer("acc", (rows, at_once * LANES))
        outer = [(index, Var(f"o{n}", "int64")) for n, index in enumerate(self.outer)]
        self.values: dict[Var, Expr] = {
            index: (var if self.axes[index] > 1 else _int(0)) for index, var in outer if isinstance(index, Var)
        }
        for axis in self.window.iter_vars:
            if self.axes[axis.var] == 1:
                self.values.setdefault(axis.var, _int(0))
        whole, rest = divmod(self.height, band)
        number = Var("band", "int64")
        body = [_loop(number, whole, self._band(number * band if whole > 1 else _int(0), band, rows))]
        if rest:
            body.append(self._band(_int(whole * band), rest, min(rows, rest)))
        stmt = sequence(body)
        for index, var in reversed(outer):
            if isinstance(index, Var) and self.axes[index] > 1:
                stmt = For(var, _int(0), _int(self.axes[index]), _SERIAL, stmt)
        root = SBlock([], [], [], "root", stmt, alloc_buffers=[self.lines, self.acc])
        return PrimFunc(list(self.original.params), SBlockRealize([], tirx.const(True), root), attrs=self.original.attrs)

    def _lines(self, rows: int) -> int:
        return (rows - 1) * self.rows.stride + (self.rows.taps - 1) * self.rows.step + 1

    def _band(self, start: Expr, count: int, rows: int) -> Stmt:
        whole, rest = divmod(count, rows)
        number = Var("rows", "int64")
        parts = [self._fill(start, count)]
        parts += [_loop(number, whole, self._rows(start, number * rows if whole > 1 else _int(0), rows))]
        if rest:
            parts.append(self._rows(start, _int(whole * rows), rest))
        return sequence(parts)

    # --- lines

    def _fill(self, start: Expr, count: int) -> Stmt:
        """The lines of a band of `count` rows: each from its row, or of padding."""
        line = Var("line", "int64")
        row = start * self.rows.stride + line + self.rows.start
        last = (self.width - 1) * self.columns.stride + (self.columns.taps - 1) * self.columns.step
        if self.padding is None:
            inside, first, end = None, 0, last + 1
            zero: Expr = _float(0)

            def element(column: Expr) -> Expr:
                return tirx.BufferLoad(self.data, [*map(self._outer, self.indices[:-2]), row, column])
        else:
            inside, first, end, zero, element = self._padded(row, last + 1)
        wide = self.columns.stride * self.phase_width
        edges = [self._columns(line, low, high, lambda column: zero) for low, high in ((0, first), (end, wide)) if low < high]
        copied = self._columns(line, first, end, element)
        stmt = copied
        if inside is not None:
            stmt = IfThenElse(inside, copied, self._columns(line, first, end, lambda column: zero))
        return For(line, _int(0), _int(self._lines(count)), _SERIAL, sequence([*edges, stmt]))

    def _columns(self, line: Expr, low: int, high: int, element: Callable[[Expr], Expr]) -> Stmt:
        """Columns `low` up to `high` of a line: those of one phase after the other."""
        stride, parts = self.columns.stride, []
        for phase in range(stride):
            first, end = -(-(low - phase) // stride), -(-(high - phase) // stride)
            if first >= end:
                continue
            place = Var("place", "int64")
            value = element((place + first) * stride + phase)
            parts.append(_loop(place, end - first, BufferStore(self.lines, value, [line, _int(phase), place + first])))
        return sequence(parts)

    def _padded(self, row: Expr, needed: int) -> tuple[Expr | None, int, int, Expr, Callable[[Expr], Expr]]:
        """When a row is there, from and up to which column its elements are, what is elsewhere, and an element."""
        assert self.padding is not None
        block = self.padding
        value = block.body.value
        if getattr(getattr(value, "op", None), "name", "") not in ("prim.if_then_else", "tirx.if_then_else", "tir.if_then_else"):
            raise Unknown("padding of another form")
        condition, inside, zero = value.args
        axes = [axis.var for axis in block.iter_vars]
        written = list(block.body.indices)
        if len(axes) != len(written) or not all(one.same_as(other) for one, other in zip(axes, written)) or loads(zero):
            raise Unknown("padding that is not by axes")
        y, x = axes[-2:]
        across = [each for each in _conjuncts(condition) if uses(each, x)]
        along = [each for each in _conjuncts(condition) if not uses(each, x)]
        if any(uses(each, var) for each in across for var in axes[:-1]):
            raise Unknown("columns that depend on more")
        values: dict[Var, Expr] = dict(zip(axes, (self._outer(index) for index in self.indices[:-2])))
        values[y] = row
        extent = int(block.iter_vars[-1].dom.extent)
        grid = RoughGrid((extent,))
        grid.values = {x: np.arange(extent)}
        there = np.ones(extent, bool)
        for each in across:
            there &= np.broadcast_to(np.asarray(grid.evaluate(each), bool), (extent,))
        if grid.rough or not there.any():
            raise Unknown("columns that are not known")
        first, end = int(there.argmax()), extent - int(there[::-1].argmax())
        if not there[first:end].all():
            raise Unknown("columns with gaps")

        def element(column: Expr) -> Expr:
            return _replaced(inside, {**values, x: column})

        row_there = [_replaced(each, values) for each in along]
        return tirx.all(*row_there) if row_there else None, first, min(end, needed), zero, element

    def _outer(self, index: Expr) -> Expr:
        return _replaced(index, self.values)

    # --- rows

    def _rows(self, start: Expr, offset: Expr, rows: int) -> Stmt:
        """`rows` rows of a band, from `offset` on."""
        group = Var("group", "int64")
        chunk = group * self.at_once if self.chunks > self.at_once else _int(0)
        parts = [self._each(rows, lambda row, at: self._start(row, at))]
        parts += [
            self._each(rows, lambda row, at, i=i, j=j: self._update(offset, chunk, row, at, i, j))
            for i in range(self.rows.taps)
            for j in range(self.columns.taps)
        ]
        parts.append(self._stored(start + offset, chunk, rows))
        return _loop(group, self.chunks // self.at_once, sequence(parts))

    def _each(self, rows: int, made: Callable[[int, Expr], Stmt]) -> Stmt:
        parts = []
        for row in range(rows):
            for chunk in range(self.at_once):
                lane = Var("lane", "int64")
                parts.append(For(lane, _int(0), _int(LANES), _VECTORIZED, made(row, lane + chunk * LANES)))
        return sequence(parts)

    def _start(self, row: int, at: Expr) -> Stmt:
        assert isinstance(self.window.init, BufferStore)
        return BufferStore(self.acc, self.window.init.value, [_int(row), at])

    def _update(self, offset: Expr, chunk: Expr, row: int, at: Expr, i: int, j: int) -> Stmt:
        column = j * self.columns.step
        line = offset * self.rows.stride + (row * self.rows.stride + i * self.rows.step)
        place = at + chunk * LANES + column // self.columns.stride
        taps = {var: _int(value) for var, value in ((self.rows.tap, i), (self.columns.tap, j)) if var is not None}

        def load(each: TensorLoad) -> Expr:
            if each.source.same_as(self.window.body.buffer):
                return tirx.BufferLoad(self.acc, [_int(row), at])
            if each.source.same_as(self.data):
                return tirx.BufferLoad(self.lines, [line, _int(column % self.columns.stride), place])
            return each

        value = tvm_ffi.structural_map(self.window.body.value, [(TensorLoad, load)])
        return BufferStore(self.acc, _replaced(value, {**self.values, **taps}), [_int(row), at])

    def _stored(self, start: Expr, chunk: Expr, rows: int) -> Stmt:
        """What is made of the accumulators, of those that are elements of the plane."""
        parts: list[Stmt] = []
        for row in range(rows):
            for number in range(self.at_once):
                last = self.chunks == self.at_once and number == self.at_once - 1
                count = self.width - (self.chunks - 1) * LANES if last else LANES
                if count == LANES or not self._of_plane_alone:
                    parts.append(self._store(start, chunk, row, number, count, self._made_of))
                    continue
                # in whole vectors, of which a part is stored
                lane = Var("lane", "int64")
                at = [_int(row), lane + number * LANES]
                value = self._made_of(tirx.BufferLoad(self.acc, at), [*map(self._outer, self.outer), start + row, at[1] + chunk * LANES])
                parts.append(For(lane, _int(0), _int(LANES), _VECTORIZED, BufferStore(self.acc, value, at)))
                parts.append(self._store(start, chunk, row, number, count, lambda acc, indices: acc))
        return sequence(parts)

    def _store(
        self, start: Expr, chunk: Expr, row: int, number: int, count: int, made: Callable[[Expr, list[Expr]], Expr]
    ) -> Stmt:
        lane = Var("lane", "int64")
        at = lane + number * LANES
        indices = [*map(self._outer, self.outer), start + row, at + chunk * LANES]
        store = BufferStore(self.result, made(tirx.BufferLoad(self.acc, [_int(row), at]), indices), indices)
        return For(lane, _int(0), _int(count), _VECTORIZED if count == LANES else _SERIAL, store)

    @property
    def _of_plane_alone(self) -> bool:
        """Whether no other operand of what is made of an element depends on the column."""
        if self.last is None:
            return True
        column = self.last.iter_vars[-1].var
        read = [load for load in loads(self.last.body.value) if not load.source.same_as(self.window.body.buffer)]
        return not any(uses(load, column) for load in read)

    def _made_of(self, acc: Expr, indices: list[Expr]) -> Expr:
        """The element at `indices` of the result, of what is accumulated for it."""
        if self.last is None:
            return acc

        def load(each: TensorLoad) -> Expr:
            return acc if each.source.same_as(self.window.body.buffer) else each

        value = tvm_ffi.structural_map(self.last.body.value, [(TensorLoad, load)])
        return _replaced(value, dict(zip((axis.var for axis in self.last.iter_vars), indices)))


def _conjuncts(condition: Expr) -> Iterator[Expr]:
    if isinstance(condition, And):
        yield from _conjuncts(condition.a)
        yield from _conjuncts(condition.b)
    else:
        yield condition


def _replaced(expr: object, values: dict[Var, Expr]) -> object:
    return tvm_ffi.structural_map(expr, [(Var, lambda var: values.get(var, var))])


def _loop(var: Var, extent: int, body: Stmt) -> Stmt:
    """A loop, or its body where it runs once: `var` is 0 then."""
    if extent == 1:
        return _replaced(body, {var: _int(0)})
    return For(var, _int(0), _int(extent), _SERIAL, body)


def _buffer(name: str, shape: Sequence[int]) -> Var:
    assert prod(shape) > 0
    return tirx.decl_buffer([_int(each) for each in shape], "float32", name)


def _is_zero(value: Expr) -> bool:
    return isinstance(value, IntImm) and int(value) == 0


def _int(value: int) -> Expr:
    return tirx.const(value, "int64")


def _float(value: float) -> Expr:
    return tirx.const(value, "float32")
