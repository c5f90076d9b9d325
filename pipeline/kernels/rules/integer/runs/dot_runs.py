"""Schedule integer products of weights by fours along runs: bytes as they are in memory, by x86's vpdpbusd.

    for … rows of the result, bands of places along them:
        lines[i, column · C + c] = x as uint8, or its zero point as padding     (none if x can be read in place)
        for blocks of filters, tiles of places:
            acc[places, filters] = − zero point · Σ weight[filters]
            for i, groups r of four along a run (taps along the line, and the channels of each):
                acc[p, 0:16] = fours(acc[p, 0:16], weight[i, r, 0:16], lines[i, p · stride · C + 4 r : + 4])
            result[tile] = epilogue(acc)

Data of int8 is offset by 128, and so is its zero point. A run that is not whole fours ends with weights of 0. Sums of
integers are exact in any order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from math import prod

from tvm import tirx
from tvm.ir import Expr, Var
from tvm.tirx import BufferStore, For, PrimFunc, Stmt

from .....targets import Machine
from .....tir.index_grid import Unknown
from .....tir.loop_nests import buffer_of, int64, sequence
from .....tir.operators.pairs import fours
from .....tir.operators.quads import neighbours, vector_of
from ....weights.repack_sums import RepackSums
from ...rule import RuleResult
from ..padded_data import guarded, in_vectors
from ..product_schedule import product_schedule
from .byte_lines import ByteLines
from .run_products import RunProducts

#: values of a group
GROUP = 4
_SERIAL = 0


def dot_runs(kernel: PrimFunc, repackable: frozenset[int], machine: Machine) -> Iterator[RuleResult]:
    """Yield the schedule of an integer product of weights: a Rule."""
    if machine.compact or not (machine.pairs and machine.dots):
        return
    yield from product_schedule(DotRuns, kernel, repackable, machine)


class DotRuns(ByteLines, RunProducts):
    """Build the kernel; `in_place` if data is read from memory. Raises Unknown for other forms."""

    #: a value: sums take in the products
    beside = 1
    wanted: str | None = "uint8"
    #: lanes of a vector that fills the lines
    filled = 32
    #: values of a group, whether they are a vector, and the least of a run
    grouped, vectors, least = GROUP, False, GROUP

    def __init__(self, kernel: PrimFunc, repackable: frozenset[int], machine: Machine):
        super().__init__(kernel, repackable, machine)
        self.lines = buffer_of("lines", self._extents(self.tiles * self.high), "uint8")

    def _check_run(self) -> None:
        """Read the zero point, and whether data is read in place. Raises Unknown for a run of few values."""
        if self.run < self.least:
            raise Unknown("no run of fours")
        self.read_bytes()
        contiguous = self.run == self.channels or not self.chosen
        self.in_place = self.padding is None and self.run % self.grouped == 0 and contiguous and not self.flipped

    def _repacked(self, in_run: list[Var]) -> RepackSums:
        zero = self.zero if isinstance(self.zero, int) else 1
        order = f"r k/{self.grouped} f k%{self.grouped}"
        return replace(super()._repacked(in_run), order=order, group=self.grouped, row=GROUP, zero=zero)

    def _extents(self, places: int) -> list[int]:
        return [*(self.axes[var] for var in self.rows), self._values_of(self.span(places))]

    def _values_of(self, columns: int) -> int:
        return columns * self.channels + -self.run % self.grouped

    def _bytes(self, places: int) -> int:
        return 0 if self.in_place else prod(self._extents(places))

    def buffers(self) -> list[Var]:
        return [self.acc] if self.in_place else super().buffers()

    def _filled(self, outer: dict[Var, Expr], start: Expr, span: int, inside: tuple[int, int]) -> list[Stmt]:
        if self.in_place:
            return []
        rows = {var: Var(var.name, "int64") for var in self.rows}
        first, end = (each * self.channels for each in inside)

        def stored(at: Expr, empty: bool = False) -> BufferStore:
            value = self.padding_value() if empty else self.lined({**outer, **rows}, start * self.stride, at)
            return BufferStore(self.lines, value, [*rows.values(), at])

        filled, nothings = in_vectors(first, end, self.filled, stored), partial(stored, empty=True)
        edges = [
            stmt
            for low, high in ((0, first), (end, self._values_of(span)))
            for stmt in in_vectors(low, high, self.filled, nothings)
        ]
        body = guarded(self.row_inside({**outer, **rows}), filled, in_vectors(first, end, self.filled, nothings))
        body = sequence([*edges, body])
        for var, loop in reversed(rows.items()):
            body = For(loop, int64(0), int64(self.axes[var]), _SERIAL, body)
        return [body]

    def start(self, block: Expr, lane: Expr) -> Expr:
        ends = self.repack.shape(self.repack.extents)[1] - 1
        held = neighbours(*(tirx.BufferLoad(self.packed, [block, int64(ends), lane * GROUP + n]) for n in range(GROUP)))
        return held if isinstance(self.zero, int) else held * self.zero

    def group(self, values: dict[Var, Expr], start: Expr, _row: int, at: Expr, group: Expr) -> Expr:
        if not self.in_place:
            lines = [values[var] for var in self.rows]
            return self._neighbours(self.lines, lines, at + group * self.grouped)
        # neighbours in memory: of the first place's indices, only the last one grows
        first = self.raw_at(values, start * self.stride + tirx.floordiv(at, self.channels), int64(0))
        *rest, last = first.indices
        return self._neighbours(first.source, rest, last + group * self.grouped)

    def _neighbours(self, buffer: Var, row: list[Expr], first: Expr) -> Expr:
        found = (tirx.BufferLoad(buffer, [*row, first + n]) for n in range(self.grouped))
        return (vector_of if self.vectors else neighbours)(*found)

    def added(self, sum_: Expr, block: Expr, row: Expr, lane: Expr, values: Expr) -> Expr:
        weights = neighbours(*(tirx.BufferLoad(self.packed, [block, row, lane * GROUP + n]) for n in range(GROUP)))
        return fours(sum_, weights, values)
