"""Write a step of LSTM, GRU and RNN: the sums of a tile of units, then its cells.

Formulas: the ONNX operator specifications of LSTM, GRU and RNN.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from typing import NamedTuple

from tvm import tirx
from tvm.ir import Expr
from tvm.script.ir_builder import tirx as T

from .activate import activate
from .arrays import IN_REGISTERS, ROWS, Array, Arrays, each, int64, loop

#: sums of a small tile are split into several, so that one addition need not wait for the other; the most of them
_SUMS, _MOST_WAYS = 64, 4


class _Tile(NamedTuple):
    """Hold `width` units from `start` on."""

    start: Expr
    width: int


class _Product(NamedTuple):
    """Multiply weights with `rows` factors, given by sequence and number; `sums` pairs gates with sums."""

    place: int
    rows: int
    factor: Callable[[Expr, Expr], Expr]
    sums: Sequence[tuple[int, int]]


class Step:
    """Write a step of all sequences.

    It is the one `place` of the group from step `first` on, in the order of execution; its cells are those of direction
    `number`.
    """

    def __init__(self, arrays: Arrays, direction: Expr, number: int, first: Expr, place: Expr):
        self._arrays, self._direction, self._number = arrays, direction, number
        self._count, self._place = first + place, place

    @classmethod
    def write_ahead(cls, arrays: Arrays, direction: Expr, number: int, first: Expr) -> None:
        """Write the input's part of the sums of all steps of a group: W is read once for several of them."""
        gates = range(arrays.cell.gates)
        group = cls(arrays, direction, number, first, int64(0))
        for tile in group._tiles():
            with loop(tile.width, IN_REGISTERS) as v, loop(arrays.group, ROWS) as place:
                step = cls(arrays, direction, number, first, place)
                totals = step._totals(tile, [step._x(*gates)], gates, int64(0), v, step._bias)
                for gate in gates:
                    arrays.ahead[place, gate, tile.start + v] = totals[gate]

    def write(self) -> None:
        """Write the new h of each sequence to `new`."""
        {"LSTM": self._lstm, "GRU": self._gru, "RNN": self._rnn}[self._arrays.cell.op]()

    def new(self, sequence: Expr) -> Array:
        """Return the row of h after this step."""
        arrays = self._arrays
        return arrays.new.at(sequence) if arrays.y is None else arrays.y.at(self._row(sequence), self._direction, sequence)

    @contextmanager
    def sequences(self) -> Iterator[Expr]:
        """Open a loop over the sequences that are no shorter than this step."""
        arrays = self._arrays
        with loop(arrays.batch) as sequence:
            if arrays.places.lengths is None:
                yield sequence
                return
            with T.If(self._count < arrays.length(sequence)), T.Then():
                yield sequence

    def _row(self, sequence: Expr) -> Expr:
        """Return the number of this step in time."""
        arrays, count = self._arrays, self._count
        if not any(arrays.cell.reverse):
            return count
        last = int64(arrays.steps) if arrays.places.lengths is None else arrays.length(sequence)
        backwards = last - 1 - count
        if all(arrays.cell.reverse):
            return backwards
        return count + self._direction * (backwards - count)

    def _lstm(self) -> None:
        arrays = self._arrays
        f, g, h = map(self._activation, range(3))
        for tile in self._tiles():
            self._add_up(tile, [self._x(0, 1, 2, 3), self._h(0, 1, 2, 3)])
            with self._units(tile) as (sequence, _v, j, (i, o, forget, new)):
                c = arrays.y_c[self._direction, sequence, j]
                taken = f(i + self._peephole(0, j, c))
                kept = 1 - taken if arrays.cell.input_forget else f(forget + self._peephole(2, j, c))
                arrays.y_c[self._direction, sequence, j] = kept * c + taken * g(new)
            with self._units(tile) as (sequence, _v, j, (i, o, forget, new)):
                c = arrays.y_c[self._direction, sequence, j]
                self.new(sequence)[j] = f(o + self._peephole(1, j, c)) * h(c)

    def _rnn(self) -> None:
        f = self._activation(0)
        for tile in self._tiles():
            self._add_up(tile, [self._x(0), self._h(0)])
            with self._units(tile) as (sequence, _v, j, (total,)):
                self.new(sequence)[j] = f(total)

    def _gru(self) -> None:
        arrays = self._arrays
        if not arrays.cell.linear_before_reset:
            self._gru_reset_first()
            return
        f, g = map(self._activation, range(2))
        for tile in self._tiles():
            products = [self._x(0, 1, 2), self._h(0, 1)._replace(sums=((0, 0), (1, 1), (2, 3)))]
            self._add_up(tile, products)
            with self._units(tile) as (sequence, v, j, (update, reset, new, share)):
                arrays.sums[sequence, 2, v] = g(new + f(reset) * share)
            with self._units(tile) as (sequence, v, j, (update, reset, new, share)):
                self.new(sequence)[j] = self._mixed(f(update), new, sequence, j)

    def _gru_reset_first(self) -> None:
        arrays = self._arrays
        f, g = map(self._activation, range(2))
        for tile in self._tiles():
            self._add_up(tile, [self._x(0, 1), self._h(0, 1)])
            with self._units(tile) as (sequence, v, j, (update, reset, _)):
                self.new(sequence)[j] = f(update)
            with self._units(tile) as (sequence, v, j, (update, reset, _)):
                arrays.reset[sequence, j] = f(reset) * arrays.y_h[self._direction, sequence, j]
        for tile in self._tiles():
            self._add_up(tile, [self._x(2), self._h(2)._replace(factor=lambda s, k: arrays.reset[s, k])])
            with self._units(tile) as (sequence, v, j, (*_, total)):
                arrays.sums[sequence, 2, v] = g(total)
            with self._units(tile) as (sequence, v, j, (*_, new)):
                self.new(sequence)[j] = self._mixed(self.new(sequence)[j], new, sequence, j)

    def _mixed(self, update: Expr, new: Expr, sequence: Expr, j: Expr) -> Expr:
        return new + update * (self._arrays.y_h[self._direction, sequence, j] - new)

    def _tiles(self) -> Iterator[_Tile]:
        """Open a loop over the whole tiles, then the rest."""
        width = self._arrays.cell.tile
        whole, rest = divmod(self._arrays.hidden, width)
        if whole:
            with loop(whole) as number:
                yield _Tile(number * width, width)
        if rest:
            yield _Tile(int64(whole * width), rest)

    def _x(self, *gates: int) -> _Product:
        """Multiply W of these gates with x, for the sums of the same numbers."""
        arrays = self._arrays
        x = arrays.given[arrays.places.x]
        return _Product(arrays.places.w, arrays.inputs, lambda s, k: x[self._row(s), s, k], _same(gates))

    def _h(self, *gates: int) -> _Product:
        arrays = self._arrays
        return _Product(arrays.places.r, arrays.hidden, lambda s, k: arrays.y_h[self._direction, s, k], _same(gates))

    def _add_up(self, tile: _Tile, products: Sequence[_Product]) -> None:
        """Write the sums of a tile: biases and products."""
        arrays = self._arrays
        sums = sorted({place for product in products for _, place in product.sums})
        if arrays.ahead is not None:
            products = [product for product in products if product.place != arrays.places.w]
        if arrays.places.lengths is None:
            with loop(tile.width, IN_REGISTERS) as v, loop(arrays.batch, ROWS) as sequence:
                self._add_up_unit(tile, products, sums, sequence, v)
        else:
            with self.sequences() as sequence, loop(tile.width, IN_REGISTERS) as v:
                self._add_up_unit(tile, products, sums, sequence, v)

    def _add_up_unit(
        self, tile: _Tile, products: Sequence[_Product], sums: Sequence[int], sequence: Expr, v: Expr
    ) -> None:
        arrays = self._arrays
        start = self._bias if arrays.ahead is None else self._ahead
        totals = self._totals(tile, products, sums, sequence, v, start)
        for place, total in zip(sums, totals):
            arrays.sums[sequence, place, v] = total

    def _bias(self, place: int, j: Expr) -> Expr:
        return self._arrays.operand(self._arrays.places.bias, self._direction, place * self._arrays.hidden + j)

    def _ahead(self, place: int, j: Expr) -> Expr:
        known = place < self._arrays.cell.gates
        return self._arrays.ahead[self._place, place, j] if known else self._bias(place, j)

    def _totals(
        self, tile: _Tile, products: Sequence[_Product], sums: Sequence[int], sequence: Expr, v: Expr,
        start: Callable[[int, Expr], Expr],
    ) -> list[Expr]:  # fmt: skip
        """Add up the products of a unit; return its sums."""
        arrays = self._arrays
        ways = max(1, min(_MOST_WAYS, _SUMS // (len(sums) * tile.width)))
        totals = Array(T.alloc_buffer([int64(ways), int64(len(sums))], arrays.dtype))
        for number, place in enumerate(sums):
            totals[0, number] = start(place, tile.start + v)
            for way in range(1, ways):
                totals[way, number] = arrays.zero()

        def add(product: _Product, way: int, k: Expr) -> None:
            factor = product.factor(sequence, k)
            for gate, place in product.sums:
                number = sums.index(place)
                totals[way, number] = totals[way, number] + factor * self._weight(product, tile, k, gate, v)

        for product in products:
            whole, rest = divmod(product.rows, ways)
            if whole:
                with loop(whole) as block:
                    for way in range(ways):
                        add(product, way, block * ways + way)
            for way in range(rest):
                add(product, way, int64(whole * ways + way))
        return [
            reduce(operator.add, (totals[way, number] for way in range(ways))) for number in range(len(sums))
        ]

    def _weight(self, product: _Product, tile: _Tile, k: Expr, gate: int, v: Expr) -> Expr:
        arrays = self._arrays
        weights, gates = arrays.given[product.place], arrays.cell.gates
        if len(weights.buffer.shape) == 3:
            return weights[self._direction, k, gate * arrays.hidden + tile.start + v]
        return weights[self._direction, tile.start * (product.rows * gates) + (k * gates + gate) * tile.width + v]

    @contextmanager
    def _units(self, tile: _Tile) -> Iterator[tuple[Expr, Expr, Expr, list[Expr]]]:
        """Open loops over the sequences and the units of a tile: sequence, number in the tile, in all, sums."""
        arrays = self._arrays
        with self.sequences() as sequence, each(tile.width) as v:
            yield sequence, v, tile.start + v, [arrays.sums[sequence, place, v] for place in range(arrays.cell.sums)]

    def _peephole(self, place: int, j: Expr, c: Expr) -> Expr:
        arrays = self._arrays
        return arrays.operand(arrays.places.peephole, self._direction, place * arrays.hidden + j) * c

    def _activation(self, place: int) -> Callable[[Expr], Expr]:
        cell = self._arrays.cell
        activation = cell.activations[self._number][place]
        clip = cell.clip if place < 2 else None  # a cell's state is no gate

        def applied(value: Expr) -> Expr:
            if clip is not None:
                limit = tirx.const(clip, self._arrays.dtype)
                value = tirx.max(tirx.min(value, limit), -limit)
            return activate(activation, value)

        return applied


def _same(gates: Sequence[int]) -> list[tuple[int, int]]:
    return [(gate, gate) for gate in gates]
