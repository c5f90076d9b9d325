"""Schedule windows over planes narrower than a vector: every product of a plane unrolled, those with padding left out.

    for … planes:
        acc[y, x] = start, for all elements of the result
        acc[y, x] += data[2 y + i, 2 x + j] * weight[i, j], for all taps inside the plane
        result[y, x] = epilogue(acc[y, x])

Lines of rules/sliding_window.py are of four columns at least, and copied first. All of a plane is loaded before any of
it is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress

import tvm_ffi
from tvm import sym, tirx
from tvm.ir import Expr, TensorLoad
from tvm.tirx import BufferStore, For, PrimFunc, Stmt

from ....targets import Machine
from ....tir.expressions import COMBINED, combined_term, loads, replaced
from ....tir.index_grid import Unknown
from ....tir.inlining import inlined
from ....tir.loop_nests import buffer_of, int64, kernel_of, sequence
from ....tir.row_window import takes_a_row
from ....tir.workspace import held_bytes
from ..line_buffer import LineBuffer
from ..loop_peeling import has_skippable_padding
from ..rule import RuleResult

_SERIAL = 0
#: columns from which vectors take less; most products of a plane
_WIDTH, _PRODUCTS = 4, 128


def small_planes(kernel: PrimFunc, _repackable: frozenset[int], machine: Machine) -> Iterator[RuleResult]:
    """Yield the schedule of `kernel` by its small planes: a Rule."""
    if machine.compact:
        return
    with suppress(Unknown):
        made = _Small(inlined(kernel), machine).kernel()
        yield RuleResult(made, workspace=held_bytes(made))


class _Small(LineBuffer):
    """Build the kernel: `acc` holds the sums of a plane."""

    def __init__(self, kernel: PrimFunc, machine: Machine):
        super().__init__(kernel, machine)
        if self.summed or self.filters or self.dtype != "float32" or str(self.data.ty.dtype) != self.dtype:
            raise Unknown("the window covers several planes, or is of other numbers")
        if takes_a_row(kernel) or loads(self.window.init.value):
            raise Unknown("the rows of a plane depend on a number, or a sum continues")
        if self.width >= _WIDTH or self.height * self.width * self.rows.taps * self.columns.taps > _PRODUCTS:
            raise Unknown("the plane is large")
        if self.padding is not None and not self._skips_padding():
            raise Unknown("the padding cannot be skipped")
        self.acc = buffer_of("acc", (self.height, self.width), self.dtype)

    def kernel(self) -> PrimFunc:
        places = [(y, x) for y in range(self.height) for x in range(self.width)]
        started, stored = [], []
        added: list[Stmt] = []
        for y, x in places:
            acc = tirx.BufferLoad(self.acc, [int64(y), int64(x)])
            started.append(BufferStore(self.acc, self.window.init.value, acc.indices))
            added += self._added(y, x, acc)
            stored.append(self._stored(y, x, acc))
        stmt: Stmt = sequence([*started, *added, *stored])
        for axis, var in reversed(self.loops.items()):
            stmt = For(var, int64(0), int64(self.axes[axis]), _SERIAL, stmt)
        return kernel_of(self.original.params, [stmt], [self.acc], self.original.attrs)

    def _skips_padding(self) -> bool:
        """Return whether sums are the same without padding: a factor 0, or the start of a pooling."""
        assert self.padding is not None
        update, start = self.window.body, self.window.init.value
        if has_skippable_padding(self.window, [self.padding]):
            return True
        pools = type(update.value).__name__ in COMBINED and isinstance(combined_term(update), TensorLoad)
        return pools and tvm_ffi.structural_equal(self.row_at(self.rows.start).zero, start)

    def _added(self, y: int, x: int, acc: TensorLoad) -> Iterator[Stmt]:
        """Yield the update of an element of the result by each tap inside the plane."""
        for i in range(self.rows.taps):
            row = replaced(self.rows.start, self.values) + (y * self.rows.stride + i * self.rows.step)
            inside, first, end, element = self._row_of(row)
            for j in range(self.columns.taps if inside else 0):
                column = x * self.columns.stride + j * self.columns.step
                if first <= column < end:
                    yield self._updated((y, x), (i, j), acc, element(int64(column)))

    def _row_of(self, row: Expr) -> tuple[bool, int, int, Callable[[Expr], Expr]]:
        """Return a row's presence, first and end column, and its element at a column."""
        inside, first, end, _, element = self.row_at(row)
        if inside is None or sym.Analyzer().can_prove(inside):
            return True, first, end, element
        if not sym.Analyzer().can_prove_equal(inside, False):
            raise Unknown("padding depends on the plane")
        return False, first, end, element

    def _updated(self, place: tuple[int, int], taps: tuple[int, int], acc: TensorLoad, at: Expr) -> Stmt:
        window = zip((self.rows.tap, self.columns.tap), taps)
        known = {var: int64(value) for var, value in window if var is not None}
        update = replaced(
            self.window.body.value, {**self.values, self.y: int64(place[0]), self.x: int64(place[1]), **known}
        )

        def load(each: TensorLoad) -> Expr:
            if each.source.same_as(self.window.body.buffer):
                return acc
            return at if each.source.same_as(self.data) else each

        return BufferStore(self.acc, tvm_ffi.structural_map(update, (TensorLoad, load)), acc.indices)

    def _stored(self, y: int, x: int, acc: TensorLoad) -> Stmt:
        values = {**self.values, self.y: int64(y), self.x: int64(x)}
        indices = [*(replaced(index, values) for index in self.outer), int64(y), int64(x)]
        return BufferStore(self.result, self.epilogue(acc, indices), indices)
