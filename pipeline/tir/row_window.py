"""Rewrite a kernel to compute a window of its result's rows.

    for y in 0…56: result[c, y, x] = Σ data[k, 2 y + i, 2 x + j] * weight[c, k, i, j]            the kernel
    first ─► for y in 0…1: result[c, first + y, x] = Σ data[k, 2 (first + y) + i, …] * …         its window of one row

The first row is an argument. `rows_of` finds the operand rows (halo included) that each result row needs; `row_window`
makes the kernel. Rows are of any one axis. A kernel the analysis does not understand has no rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from tvm import sym, tirx
from tvm.ir import Expr, TensorLoad, Var
from tvm.s_tir import SBlock
from tvm.tirx import BufferStore, IntImm, PrimFunc, Stmt

from ..program import Follows, Rows
from .expressions import collect, loads, replaced, uses
from .index_grid import NoMatch, RoughGrid
from .inlining import inlined
from .loop_nests import (
    analyzer_of,
    blocks_of,
    change_nest,
    fresh_axes,
    kernel_of,
    move_accesses,
    resized,
    simple,
    simplify_indices,
)

_SPATIAL = 0
#: largest number of rows: each is analysed by itself
MOST_ROWS = 1 << 20


def rows_of(kernel: PrimFunc, axis: int) -> Rows | None:
    """Find the operand rows each row of the only result needs, along its `axis`.

    None if operands do not follow, or if there are more than MOST_ROWS.
    """
    if int(kernel.params[-1].ty.shape[axis]) > MOST_ROWS:
        return None
    try:
        found, _ = _follow(kernel, axis)
        params = enumerate(found.kernel.params[:-1])
        operands = tuple((n, found.follows(param)) for n, param in params if found.is_followed(param))
    except NoMatch:
        return None
    return Rows(axis, int(found.kernel.params[-1].ty.shape[axis]), operands)


def row_window(kernel: PrimFunc, axis: int, count: int) -> PrimFunc:
    """Rewrite `kernel` to compute a result of `count` rows only.

    Its new first parameter, an int64, is the number of the first of them. Raises NoMatch if `rows_of` is None.
    """
    found, result = _follow(kernel, axis)
    first = Var("first", "int64")
    nests, buffers = found.window(count, first)
    own = [buffers.get(each, each) for each in found.written if not each.same_as(result)]
    return kernel_of([first, *(buffers.get(each, each) for each in found.kernel.params)], nests, own, kernel.attrs)


def tensors_of(kernel: PrimFunc) -> list[Var]:
    """Return the parameters of a kernel that are tensors: all but the number of a row."""
    return [param for param in kernel.params if getattr(param.ty, "shape", None) is not None]


def calls_of(kernel: PrimFunc) -> tuple[Var, int] | None:
    """Return the number that a kernel of rows takes, and how many there are: it bounds them. None for another kernel."""
    number = next((param for param in kernel.params if getattr(param.ty, "shape", None) is None), None)
    if number is None:
        return None
    bounds = (each for each in collect(kernel.body, tirx.Min) if each.a.same_as(number))
    return number, max((int(each.b) + 1 for each in bounds), default=1)


def takes_a_row(kernel: PrimFunc) -> bool:
    """Return whether a parameter is a scalar, as the number of the first row is."""
    return any(getattr(param.ty, "shape", None) is None for param in kernel.params)


def _follow(kernel: PrimFunc, axis: int) -> tuple[RowDependence, Var]:
    found = RowDependence(inlined(kernel, True))
    result = found.kernel.params[-1]
    found.start(result, axis)
    for block in reversed(blocks_of(found.kernel)):
        found.follow(block)
    return found, result


@dataclass(frozen=True)
class Span:
    """Rows needed of a proportional buffer, for rows `first` up to `first` + n.

    These are the rows from slope · first + low up to slope · (first + n - 1) + high.
    """

    slope: int
    low: int
    high: int

    def count(self, rows: int) -> int:
        return self.slope * (rows - 1) + self.high - self.low

    def start(self, first: Expr) -> Expr:
        return first * self.slope + self.low


@dataclass(frozen=True)
class RowNest:
    """A block with one loop per axis; `row` is the axis that follows the rows, if any."""

    block: SBlock
    row: Var | None

    @property
    def store(self) -> BufferStore:
        return self.block.body


class RowDependence:
    """Trace how a kernel's buffers follow rows, from the last block to the first.

    `dims` maps a buffer to the axis that follows; `spans` the buffers the kernel writes to the rows needed; `whole` are
    buffers each row needs entirely. `nests` are in the order they were met: last block first. With `repeats`, a sum may
    be in `whole`.
    """

    def __init__(self, kernel: PrimFunc, repeats: bool = False):
        self.kernel = kernel
        self._repeats = repeats
        self.dims: dict[Var, int] = {}
        self.spans: dict[Var, Span] = {}
        self.whole: set[Var] = set()
        self.nests: list[RowNest] = []
        self._reads: dict[Var, list[tuple[RowNest, Expr]]] = {}

    @property
    def written(self) -> list[Var]:
        return [nest.store.buffer for nest in self.nests]

    def is_followed(self, buffer: Var) -> bool:
        return buffer in self.dims and buffer not in self.whole

    def start(self, buffer: Var, axis: int) -> None:
        """Follow the rows of `buffer` along `axis`."""
        self.dims[buffer], self.spans[buffer] = axis, Span(1, 0, 1)

    def follow(self, block: SBlock) -> None:
        """Trace the next block, in reverse execution order."""
        store = block.body
        if store.buffer in self.whole:
            self._repeat(block)
            return
        dim = self.dims.get(store.buffer)
        if dim is None:
            raise NoMatch("a block has no reader")
        row = next((axis for axis in block.iter_vars if axis.var.same_as(store.indices[dim])), None)
        if row is None or int(row.iter_type) != _SPATIAL or int(row.dom.extent) != int(store.buffer.ty.shape[dim]):
            raise NoMatch("a block does not write row by row")
        if any(uses(index, row.var) for place, index in enumerate(store.indices) if place != dim):
            raise NoMatch("a row axis occurs in two indices")
        span = self.spans[store.buffer]
        if self.nests and not 0 <= span.low <= span.slope * (self._count - 1) + span.high <= int(row.dom.extent):
            raise NoMatch("the window covers rows outside its buffer")
        self.add(RowNest(block, row.var))

    @property
    def _count(self) -> int:
        """Return the number of rows of the result."""
        root = self.nests[0]
        return next(int(axis.dom.extent) for axis in root.block.iter_vars if axis.var.same_as(root.row))

    def add(self, nest: RowNest) -> None:
        self.nests.append(nest)
        for load in loads(nest.store.value):
            if not load.source.same_as(nest.store.buffer):
                self._need(nest, load)

    def _repeat(self, block: SBlock) -> None:
        """Repeat a block every row needs whole, mostly padding: recompute it per window, or inline it at its reader."""
        if (block.init is not None and not self._repeats) or block.body.buffer in self.dims:
            raise NoMatch("a sum is needed whole, or a block both whole and by row")
        self.nests.append(RowNest(block, None))
        self.whole.update(load.source for load in loads(block.body.value))

    def _need(self, nest: RowNest, load: TensorLoad) -> None:
        """Record the rows a load needs of its buffer."""
        source, indices = load.source, simple(nest.block, load.indices)
        if any(source.same_as(each) for each in self.written):
            raise NoMatch("a buffer is read before it is written")
        moved = [place for place, index in enumerate(indices) if uses(index, nest.row)]
        if any(loads(indices[place]) for place in moved):
            self.whole.add(source)  # a row looked up at run time may be any
            return
        # a row may choose the phase of a channel too (pixel shuffle): its operand has whole rows, with all channels
        own = self.dims.get(nest.store.buffer)
        places = moved if len(moved) == 1 else [each for each in moved if self._moves_on(nest, indices[each])] or moved
        place = places[0] if len(places) == 1 else own if own in places else None
        if place is None or self.dims.get(source, place) != place:
            self.whole.add(source)
            return
        self.dims[source] = place
        self._reads.setdefault(source, []).append((nest, indices[place]))
        if not any(source.same_as(each) for each in self.kernel.params):
            self._stretch(nest, source, indices[place])

    def _moves_on(self, nest: RowNest, index: Expr) -> bool:
        """Return whether later rows never read before earlier ones at `index`: a phase begins again."""
        try:
            low, high = self._needed(nest, index)
        except NoMatch:
            return False
        return bool((np.diff(low) >= 0).all() and (np.diff(high) >= 0).all())

    def _stretch(self, nest: RowNest, buffer: Var, index: Expr) -> None:
        """Widen the window of an internal buffer to the rows the block reads at `index`."""
        axes = [axis for axis in nest.block.iter_vars if uses(index, axis.var)]
        linear = sym.detect_linear_equation(index, [axis.var for axis in axes])
        if not linear or any(not isinstance(each, IntImm) for each in linear):
            raise NoMatch("the rows are not an affine function of the result's rows")
        low = high = int(linear[-1])
        slope = 0
        for axis, factor in zip(axes, map(int, linear[:-1])):
            if axis.var.same_as(nest.row):
                slope = factor
            else:
                low += min(0, factor * (int(axis.dom.extent) - 1))
                high += max(0, factor * (int(axis.dom.extent) - 1))
        span = self.spans[nest.store.buffer]
        needed = Span(slope * span.slope, slope * span.low + low, slope * (span.high - 1) + high + 1)
        known = self.spans.setdefault(buffer, needed)
        if slope < 1 or known.slope != needed.slope:
            raise NoMatch("the row strides differ")
        self.spans[buffer] = replace(known, low=min(known.low, needed.low), high=max(known.high, needed.high))

    def follows(self, param: Var) -> Follows:
        """Return the rows of a parameter that each row needs, ignoring the kernel's conditions."""
        dim = self.dims[param]
        needed = [self._needed(nest, index) for nest, index in self._reads[param]]
        low, high = np.min([low for low, _ in needed], axis=0), np.max([high for _, high in needed], axis=0)
        return Follows(dim, int(param.ty.shape[dim]), tuple(low.tolist()), tuple(high.tolist()))

    def _needed(self, nest: RowNest, index: Expr) -> tuple[np.ndarray, np.ndarray]:
        span = self.spans[nest.store.buffer]
        axes = [axis for axis in nest.block.iter_vars if uses(index, axis.var) and not axis.var.same_as(nest.row)]
        extent = self._count
        grid = RoughGrid((extent, span.high - span.low, *(int(axis.dom.extent) for axis in axes)))
        row, offset, *others = np.ogrid[tuple(slice(each) for each in grid.shape)]
        grid.values = {axis.var: values for axis, values in zip(axes, others)}
        grid.values[nest.row] = row * span.slope + span.low + offset
        rows = np.broadcast_to(grid.evaluate(index), grid.shape).reshape(extent, -1)
        margin = 1 if grid.rough else 0
        return rows.min(axis=1) - margin, rows.max(axis=1) + 1 + margin

    def window(self, count: int, first: Var) -> tuple[list[Stmt], dict[Var, Var]]:
        """Build the nests for `count` rows from `first`, in execution order.

        Returns also the map of replaced buffers.
        """
        buffers: dict[Var, Var] = {}
        starts: dict[Var, Expr] = {}
        for old, span in self.spans.items():
            if old in self.dims:
                buffers[old] = resized(old, self.dims[old], span.count(count))
                starts[old] = span.start(first)
        return [self._made(nest, count, first, buffers, starts) for nest in reversed(self.nests)], buffers

    def _made(self, nest: RowNest, count: int, first: Var, buffers: dict[Var, Var], starts: dict[Var, Expr]) -> Stmt:
        """Build one nest of a window; `starts` maps each old buffer to its first row."""
        span = self.spans.get(nest.store.buffer)
        rows = {nest.row: span.count(count)} if span is not None and nest.row is not None else {}
        axes, values = fresh_axes(nest.block, rows)
        values |= {row: values[row] + span.start(first) for row in rows if span is not None}
        # keep the row axis in the indices, even with one value: tiling matches it
        analyzer = analyzer_of([new for old, new in zip(nest.block.iter_vars, axes) if not old.var.same_as(nest.row)])

        def placed(buffer: Var, indices: Sequence[Expr]) -> list[Expr]:
            return [index - starts[buffer] if n == self.dims[buffer] else index for n, index in enumerate(indices)]

        def rewritten(store: BufferStore) -> BufferStore:
            return simplify_indices(move_accesses(replaced(store, values), buffers, placed), analyzer)

        return change_nest(nest.block, axes, rewritten)
