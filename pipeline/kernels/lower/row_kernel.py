"""Bind a scheduled kernel of rows to the memory of its loop: whole tensors, rings, and rows just computed.

rows(first; x, y)        y[0, j] = Σ x[first + i, j] · …                x and y by all rows: what rules schedule
rows(number; ring, y)    y[number, j] = Σ ring[(number + i) % 3, j]     what a loop calls

row r of a ring          at r modulo the rows it holds
rows just computed       in a value of the trip, if the tensor has one, until they are copied to the ring
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import tvm_ffi
from tvm import sym, tirx
from tvm.ir import Expr, TensorLoad, TensorRegion, Var
from tvm.tirx import BufferStore, IfThenElse, IntImm, PrimFunc, Select, Stmt

from ...memory.streaming.growth import rows_first
from ...tir.expressions import collect, is_among, replaced
from ...tir.loop_nests import all_of, buffer_of, int64


@dataclass(frozen=True)
class Fresh:
    """Rows just computed of a tensor: so many, in a value of their own.

    To a reader at row r, row r · `scale` + `ahead` is the first of them.
    """

    rows: int
    scale: int
    ahead: int


@dataclass(frozen=True)
class RowPlace:
    """Memory of a tensor of this `shape`, all rows counted, with its rows along `axis`.

    A ring holds `held` of them, 0 if all that are needed are `fresh`. `overlaps`: groups of rows may lie across the end of
    the ring. `turned`: the rows are stored one after the other, as the first axis.
    """

    shape: tuple[int, ...]
    axis: int = 0
    held: int | None = None
    overlaps: bool = False
    turned: bool = False
    fresh: Fresh | None = None

    @property
    def memory(self) -> tuple[int, ...]:
        """Return the shape of the ring or of the whole tensor, as stored."""
        shape = self._resize(self.held) if self.held is not None else self.shape
        return rows_first(shape, self.axis) if self.turned else shape

    @property
    def fresh_memory(self) -> tuple[int, ...]:
        """Return the shape of the rows just computed."""
        assert self.fresh is not None
        return self._resize(self.fresh.rows)

    def _resize(self, rows: int) -> tuple[int, ...]:
        return tuple(rows if place == self.axis else extent for place, extent in enumerate(self.shape))

    def indices(self, indices: Sequence[Expr], first: Expr | None = None) -> list[Expr]:
        """Return the indices of an element in the ring, or in the whole tensor; with `first`, they count from that row."""
        found = list(indices)
        if found and first is not None:
            own = found[self.axis]
            if self.held is None:
                found[self.axis] = first + own
            elif self.overlaps:
                found[self.axis] = tirx.floormod(first + own, self.held)
            else:
                found[self.axis] = tirx.floormod(first, self.held) + own
        elif found and self.held is not None:
            found[self.axis] = tirx.floormod(found[self.axis], self.held)
        return list(rows_first(found, self.axis)) if self.turned else found

    def fresh_indices(self, indices: Sequence[Expr], first: Expr) -> list[Expr]:
        """Return the indices of an element among the rows just computed, of which `first` is the first."""
        assert self.fresh is not None
        found, rows = list(indices), self.fresh.rows
        found[self.axis] = (
            sym.Analyzer().simplify(tirx.floormod(found[self.axis] - first, rows)) if rows > 1 else int64(0)
        )
        return found


@dataclass(frozen=True)
class RowKernel:
    """Memory of the rows of an unscheduled kernel's operands and result, and the rows its calls compute.

    `places` are those of its tensors, the result last; None for one stored in the kernel's own layout. Call n computes `group`
    rows from row `start` + n · `group` on, of `extent`, in `groups` calls; the last ones, if that does not divide them.
    `windowed`: the result counts from its first row. `continues`: the parameter before the result is the result so far.
    Without `groups`, the kernel takes no row.
    """

    places: tuple[RowPlace | None, ...]
    group: int = 1
    extent: int = 1
    groups: int = 0
    start: int = 0
    windowed: bool = False
    continues: bool = False

    def bind(self, kernel: PrimFunc) -> PrimFunc:
        """Bind a scheduled kernel to the number of a call, if it takes a row, and its memory.

        Where rows just computed are not all, both are operands: those just computed come after all others.
        """
        return _Binding(kernel, self).bound()


class _Binding:
    """Rewrite one kernel: `held` maps its parameters to their place and their buffers."""

    def __init__(self, kernel: PrimFunc, rows: RowKernel):
        self.kernel, self.rows = kernel, rows
        params = list(kernel.params)
        self.first = params.pop(0) if rows.groups else None
        self.result = params[-1]
        so_far = params.pop(-2) if rows.continues else None
        self.places = {param: place for param, place in zip(params, rows.places, strict=True) if place is not None}
        self.buffers = {
            param: self._buffer(param, place.memory) for param, place in self.places.items() if place.held != 0
        }
        self.fresh = {
            param: self._buffer(param, place.fresh_memory)
            for param, place in self.places.items()
            if place.fresh is not None
        }
        if so_far is not None and self.result in self.places:
            self.places[so_far], self.buffers[so_far] = self.places[self.result], self.buffers[self.result]
        elif so_far is not None:
            self.buffers[so_far] = self.result
        first_of = {param: self.buffers.get(param, self.fresh.get(param, param)) for param in params}
        more = [self.fresh[param] for param in params if param in self.fresh and param in self.buffers]
        self.params = [*(first_of[param] for param in params[:-1]), *more, first_of[self.result]]
        self.conditions: list[Expr] = []

    def _buffer(self, param: Var, shape: Sequence[int]) -> Var:
        return buffer_of(param.name, shape, str(param.ty.dtype))

    def bound(self) -> PrimFunc:
        moved = [(TensorLoad, self._load), (BufferStore, self._store), (TensorRegion, self._region)]
        body, params = tvm_ffi.structural_map(self.kernel.body, moved), self.params
        if self.first is not None:
            number = Var("number", "int32")
            params = [number, *params]
            body = replaced(body, {self.first: self._row(number)})
        return PrimFunc(params, body, attrs=self.kernel.attrs).with_attr("tirx.noalias", True)

    def _row(self, number: Var) -> Expr:
        """Return the first row of a call."""
        # the range lets TVM compute indices in 32 bits, and without care for negative numbers
        bounded = tirx.max(tirx.min(number, tirx.const(self.rows.groups - 1, "int32")), tirx.const(0, "int32"))
        row = tirx.Cast("int64", bounded) * self.rows.group
        if self.rows.extent % self.rows.group:
            row = tirx.min(row, int64(self.rows.extent - self.rows.group))
        return row + self.rows.start if self.rows.start else row

    def _load(self, each: TensorLoad) -> Expr:
        place = self.places.get(each.source)
        if place is None:
            return tirx.BufferLoad(self.buffers[each.source], each.indices) if each.source in self.buffers else each
        if self.rows.windowed and each.source.same_as(self.result):
            return tirx.BufferLoad(self.buffers[each.source], place.indices(each.indices, self.first))
        found = self._read(each, place)
        self.conditions.extend([found.condition] if isinstance(found, Select) else [])
        return found

    def _read(self, each: TensorLoad, place: RowPlace) -> Expr:
        fresh = place.fresh
        if fresh is None or self.first is None:
            return tirx.BufferLoad(self.buffers[each.source], place.indices(each.indices))
        newest = self.first * fresh.scale + fresh.ahead
        found = tirx.BufferLoad(self.fresh[each.source], place.fresh_indices(each.indices, newest))
        since = sym.Analyzer().simplify(each.indices[place.axis] - newest)
        if each.source not in self.buffers or (isinstance(since, IntImm) and int(since) >= 0):
            return found
        older = tirx.BufferLoad(self.buffers[each.source], place.indices(each.indices))
        return older if isinstance(since, IntImm) else Select(since >= 0, found, older)

    def _store(self, each: BufferStore) -> Stmt:
        place = self.places.get(each.buffer)
        if place is not None:
            own = self.first if self.rows.windowed and each.buffer.same_as(self.result) else None
            each = BufferStore(self.buffers[each.buffer], each.value, place.indices(each.indices, own))
        return choose_once(each, self.conditions)

    def _region(self, each: TensorRegion) -> TensorRegion:
        buffer = self.buffers.get(each.source, self.fresh.get(each.source))
        return each if buffer is None else all_of(buffer)


def choose_once(store: BufferStore, conditions: Sequence[Expr]) -> Stmt:
    """Choose between rows just computed and ring once for a store of several bytes: LLVM loads chosen neighbours one by one.

    `conditions` are those by which loads choose.
    """
    found = collect(store.value, Select)
    alike = (_are_bytes(each) and tvm_ffi.structural_equal(each.condition, found[0].condition) for each in found)
    if not found or not all(alike) or not is_among(found[0].condition, conditions):
        return store

    def by(choice: str) -> BufferStore:
        value = tvm_ffi.structural_map(store.value, (Select, lambda each: getattr(each, choice)))
        return BufferStore(store.buffer, value, store.indices)

    return IfThenElse(found[0].condition, by("true_value"), by("false_value"))


def _are_bytes(select: Select) -> bool:
    return all(
        isinstance(each, TensorLoad) and str(each.ty.dtype) in ("int8", "uint8")
        for each in (select.true_value, select.false_value)
    )
