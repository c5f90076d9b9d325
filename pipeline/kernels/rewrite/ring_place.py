"""Find the elements of a tensor in the kernel of a streaming region: whole, in a ring, or just computed in a slot.

    row r of a ring          at r modulo the rows it holds
    rows just computed       in a slot, if the tensor has one, until they are copied to the ring
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import tvm_ffi
from tvm import sym, tirx
from tvm.ir import Expr, TensorLoad, TensorRegion, Var
from tvm.tirx import BufferStore, IfThenElse, IntImm, Select, Stmt

from ...memory.streaming.growth import is_turned, turned
from ...memory.streaming.stage import Stage
from ...tir.loop_nests import all_of, buffer_of, flat_index, int64


@dataclass(frozen=True)
class Slot:
    """Place of the rows that `writer` has just computed: a flat buffer, for rows of this `shape`."""

    buffer: Var
    shape: tuple[int, ...]
    writer: Stage

    def newest(self, row: Expr, reader: Stage, lead: int) -> Expr:
        """Return the first of these rows with `reader` at its `row`; `lead` ticks before for a part of it."""
        ahead = (reader.offset - lead - self.writer.offset) // self.writer.period
        return row * (reader.period // self.writer.period) + ahead * self.writer.group

    def indices(self, indices: Sequence[Expr], first: Expr | int = 0) -> list[Expr]:
        """Return the index of an element; along the axis, `indices` count from row -`first`."""
        found, axis = list(indices), self.writer.axis
        rows = self.shape[axis]
        found[axis] = tirx.floormod(found[axis] - first, rows) if rows > 1 else int64(0)
        # those of rings are simplified as TVM flattens them, which leaves a flat buffer alone
        return [sym.Analyzer().simplify(flat_index(self.shape, found))]


@dataclass(frozen=True)
class Place:
    """Location of a tensor: its buffer, the axis and number of rows of a ring, and the slot of the rows just computed.

    `overlaps`: groups of rows may lie across the end of the ring. Without a `buffer`, all rows are in the slot. `turned`:
    the rows lie one after the other, as the first axis of the buffer.
    """

    buffer: Var | None
    axis: int = 0
    held: int | None = None
    overlaps: bool = False
    slot: Slot | None = None
    turned: bool = False

    @property
    def fresh(self) -> Var:
        """Return the buffer that the tensor's own stage writes to."""
        found = self.buffer if self.slot is None else self.slot.buffer
        assert found is not None
        return found

    def region(self, own: bool) -> TensorRegion:
        """Return the region that the tensor's `own` stage, or another, accesses."""
        return all_of(self.fresh if own or self.buffer is None else self.buffer)

    def of_stage(self, indices: Sequence[Expr], row: Expr | None) -> list[Expr]:
        """Return the indices by which the tensor's own stage accesses an element; with `row`, they count from there."""
        return self.in_ring(indices, row) if self.slot is None else self.slot.indices(indices)

    def in_ring(self, indices: Sequence[Expr], row: Expr | None = None) -> list[Expr]:
        """Return the indices of an element in the ring, or in the whole tensor; with `row`, they count from there."""
        found = list(indices)
        if row is None and self.held is None:  # a scalar has no axis
            return list(turned(found, self.axis)) if self.turned else found
        place = found[self.axis]
        if row is None:
            found[self.axis] = tirx.floormod(place, self.held)
        elif self.held is None:
            found[self.axis] = row + place
        elif not self.overlaps:
            found[self.axis] = tirx.floormod(row, self.held) + place
        else:
            found[self.axis] = tirx.floormod(row + place, self.held)
        return list(turned(found, self.axis)) if self.turned else found

    def read(self, indices: Sequence[Expr], row: Expr | None, reader: Stage, lead: int) -> Expr:
        """Load an element for `reader` at its `row`; for a part of it, `lead` ticks before."""
        if self.slot is None or row is None:
            return tirx.BufferLoad(self.buffer, self.in_ring(indices))
        newest = self.slot.newest(row, reader, lead)
        fresh = tirx.BufferLoad(self.slot.buffer, self.slot.indices(indices, newest))
        since = sym.Analyzer().simplify(indices[self.axis] - newest)
        if self.buffer is None or (isinstance(since, IntImm) and int(since) >= 0):
            return fresh
        older = tirx.BufferLoad(self.buffer, self.in_ring(indices))
        return older if isinstance(since, IntImm) else tirx.Select(since >= 0, fresh, older)

    def kept(self, axes: Sequence[Expr], row: Expr) -> BufferStore:
        """Copy an element of the rows just computed, from `row` on, to the ring."""
        assert self.slot is not None and self.buffer is not None
        value = tirx.BufferLoad(self.slot.buffer, self.slot.indices(axes))
        return BufferStore(self.buffer, value, self.in_ring(axes, row))


def chosen_once(store: BufferStore, conditions: Sequence[Expr]) -> Stmt:
    """Choose between slot and ring once for a store of several bytes: LLVM loads chosen neighbours one by one.

    `conditions` are those by which `Place.read` chooses.
    """
    found: list[Select] = []
    tvm_ffi.structural_walk(store.value, (Select, found.append))
    alike = (_are_bytes(each) and tvm_ffi.structural_equal(each.condition, found[0].condition) for each in found)
    if not found or not all(alike) or not any(tvm_ffi.structural_equal(each, found[0].condition) for each in conditions):
        return store

    def by(choice: str) -> BufferStore:
        value = tvm_ffi.structural_map(store.value, (Select, lambda each: getattr(each, choice)))
        return BufferStore(store.buffer, value, store.indices)

    return IfThenElse(found[0].condition, by("true_value"), by("false_value"))


def _are_bytes(select: Select) -> bool:
    return all(isinstance(each, TensorLoad) and str(each.ty.dtype) in ("int8", "uint8") for each in (select.true_value, select.false_value))


def in_rows(name: str, shape: Sequence[int], axis: int, dtype: str) -> Place:
    """Return the place of a whole tensor whose rows lie one after the other."""
    if is_turned(shape, axis):
        return Place(buffer_of(name, shape, dtype), axis)
    return Place(buffer_of(name, turned(shape, axis), dtype), axis, turned=True)
