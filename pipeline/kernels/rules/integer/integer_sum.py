"""Match a sum of integer products with a weight: optional padding, the sum, and an optional element-wise epilogue."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from tvm import sym, tirx
from tvm.ir import Expr, TensorLoad, Var
from tvm.s_tir import SBlock
from tvm.tirx import For, IntImm, PrimFunc, Stmt

from ....tir.expressions import conjuncts, is_choice, loads, replaced, uses, with_loads
from ....tir.index_grid import Unknown, holds_along
from ....tir.loop_nests import blocks_of, buffer_of, int64, kernel_of, simple
from ...weights.repack import Repack
from ...weights.repack_sums import RepackSums

_SERIAL, _REDUCE = 0, 2
#: most taps along a row, since they are unrolled
_MOST_TAPS = 16


class IntegerSum:
    """Read the parts of a kernel: `padding`, `total` and `last` are its blocks, `weight` and `value` the factors.

    Axes of the sum: `f` moves the weight alone, along its dimension `filters`; `x` the data alone, along its dimension
    `along`, by `stride`; `tap` moves the data along the same dimension, by `step`. Raises Unknown for other forms.
    """

    def __init__(self, kernel: PrimFunc, repackable: frozenset[int]):
        self.original = kernel
        blocks = blocks_of(kernel)
        places = [number for number, block in enumerate(blocks) if block.init is not None]
        if len(places) != 1 or places[0] > 1 or len(blocks) - places[0] > 2:
            raise Unknown("more than padding, a sum and an epilogue")
        self.padding = blocks[0] if places[0] == 1 else None
        self.total, self.last = blocks[places[0]], blocks[-1] if len(blocks) - places[0] == 2 else None
        self.axes = {axis.var: int(axis.dom.extent) for axis in self.total.iter_vars}
        self.summed = [each.var for each in self.total.iter_vars if int(each.iter_type) == _REDUCE]
        self.weight, self.value = self._factors(repackable)
        self.f, self.filters = self._filters()
        self.number = next(n for n, param in enumerate(kernel.params) if param.same_as(self.weight.source))
        self.data = self._data()
        self.indices = simple(self.total, self.data.indices)
        self.x, self.along = self._places()
        self.tap, self.stride, self.step = self._walk()
        self._check_epilogue()

    def pairable(self) -> list[Var]:
        """List the summed axes besides the tap that are an index of the data."""
        others = [var for var in self.summed if not var.same_as(self.tap)]
        return [var for var in others if any(var.same_as(each) for each in self.indices)]

    def outer(self) -> dict[Var, Expr]:
        """Return loop variables of the axes around the places and the filters, 0 for an axis of one."""
        spatial = [
            var for var in self.axes if var not in self.summed and not var.same_as(self.f) and not var.same_as(self.x)
        ]
        return {var: Var(var.name, "int64") if self.axes[var] > 1 else int64(0) for var in spatial}

    def span(self, places: int) -> int:
        """Count the columns of the data that so many neighbouring places read."""
        return (places - 1) * self.stride + ((self.axes[self.tap] - 1) * self.step if self.tap is not None else 0) + 1

    def result(self, sum_: Expr, own: dict[Var, Expr]) -> tuple[Var, Expr, list[Expr]]:
        """Return the buffer, the value and the indices to store for a sum, of the axes' values `own`."""
        if self.last is None:
            return self.original.params[-1], sum_, [replaced(each, own) for each in self.total.body.indices]
        values = {var: replaced(value, own) for var, value in self.epilogue.items()}
        value = replaced(with_loads(self.last.body.value, self.total.body.buffer, sum_), values)
        return self.last.body.buffer, value, [replaced(each, values) for each in self.last.body.indices]

    def unpadded(self) -> tuple[Expr, Expr]:
        """Return the condition for a value of `padding` to be none, and the value then. Raises Unknown for other forms."""
        assert self.padding is not None
        stored = self.padding.body
        reads = self.data.source.same_as(stored.buffer) and self.value.same_as(self.data)
        if not _plain(self.padding) or not is_choice(stored.value) or not reads:
            raise Unknown("the padding is not a select at its own axes")
        border, inside, nothing = stored.value.args
        if not isinstance(nothing, IntImm) or int(nothing):
            raise Unknown("the padding is not zero")
        return border, inside

    def unpadded_columns(self, border: Expr) -> tuple[int, int]:
        """Return the first and the end of the columns that meet the `border`. Raises Unknown if others lie between."""
        assert self.padding is not None
        axis = self.padding.iter_vars[self.along]
        across = [each for each in conjuncts(border) if uses(each, axis.var)]
        if any(
            uses(each, other.var)
            for each in across
            for other in self.padding.iter_vars
            if not other.var.same_as(axis.var)
        ):
            raise Unknown("the padding of columns depends on other axes")
        there = np.ones(int(axis.dom.extent), bool)
        for each in across:
            there &= holds_along(each, axis.var, len(there))
        low, high = int(there.argmax()), len(there) - int(there[::-1].argmax())
        if not there.any() or not there[low:high].all():
            raise Unknown("the columns are not contiguous")
        return low, high

    def in_rows(self, body: Stmt, outer: dict[Var, Expr], own: Sequence[Var], packed: Var | None = None) -> PrimFunc:
        """Build the kernel: the `outer` loops around `body`, buffers of its `own`, the weight `packed` if it is repacked."""
        for var, loop in reversed(outer.items()):
            body = body if isinstance(loop, IntImm) else For(loop, int64(0), int64(self.axes[var]), _SERIAL, body)
        params = [
            packed if packed is not None and n == self.number else each for n, each in enumerate(self.original.params)
        ]
        return kernel_of(params, [body], list(own), self.original.attrs)

    def packed_by(self, repack: Repack) -> Var:
        """Return the buffer of the weight in the layout `repack`."""
        shape = repack.shape(tuple(map(int, self.weight.source.ty.shape)))
        return buffer_of(self.weight.source.name, shape, str(self.weight.source.ty.dtype))

    def sums_repack(self, width: int, order: str, run: Sequence[int], group: int, **others: Any) -> RepackSums:
        """Return the layout of the weight for blocks of `width` filters: see RepackSums."""
        extents = tuple(map(int, self.weight.source.ty.shape))
        return RepackSums(
            self.number, self.filters, width, order=order, run=tuple(run), extents=extents, group=group, **others
        )

    def _factors(self, repackable: frozenset[int]) -> tuple[TensorLoad, Expr]:
        """Return the load of the weight, and the other factor in int16."""
        value = self.total.body.value
        own = self.total.body.buffer
        if str(value.ty.dtype) != "int32" or not isinstance(value, tirx.Add) or not isinstance(value.b, tirx.Mul):
            raise Unknown("no sum of integer products")
        if not isinstance(value.a, TensorLoad) or not value.a.source.same_as(own):
            raise Unknown("no sum of integer products")
        weights = [self.original.params[number] for number in repackable]
        for one, other in ((value.b.a, value.b.b), (value.b.b, value.b.a)):
            load: Expr = one
            while isinstance(load, tirx.Cast):
                load = load.value
            if not isinstance(load, TensorLoad) or not any(load.source.same_as(each) for each in weights):
                continue
            if isinstance(other, tirx.Cast) and str(other.value.ty.dtype) == "int16":
                return load, other.value
        raise Unknown("no weight that may be repacked")

    def _filters(self) -> tuple[Var, int]:
        for place, index in enumerate(self.weight.indices):
            spatial = isinstance(index, Var) and index in self.axes and index not in self.summed
            elsewhere = [
                each for n, each in enumerate(self.weight.indices) if n != place and spatial and uses(each, index)
            ]
            if spatial and self.axes[index] > 1 and not elsewhere and not uses(self.value, index):
                return index, place
        raise Unknown("no axis moves the weight alone")

    def _data(self) -> TensorLoad:
        """Return the load of the data; another may only be of a zero point computed at run time, the same for all sums."""
        found = moved(self.value, self.axes)
        if len(found) != 1 or any(
            load.source.same_as(found[0].source) for load in loads(self.value) if not load.same_as(found[0])
        ):
            raise Unknown("the other factor reads more than one operand")
        return found[0]

    def value_of(self, load: TensorLoad) -> Expr:
        """Return the factor for another element of the data."""
        return with_loads(self.value, self.data.source, load)

    def _places(self) -> tuple[Var, int]:
        """Find the axis of places, maybe of extent 1, and its dimension of the data."""
        for dimension, index in reversed(list(enumerate(self.indices))):
            for var, extent in self.axes.items():
                if var in self.summed or extent == 1 or not uses(index, var) or uses(self.weight, var):
                    continue
                if sum(uses(each, var) for each in self.indices) == 1:
                    return var, dimension
        single = Var("single", "int64")
        self.axes[single] = 1
        return single, 0

    def _walk(self) -> tuple[Var | None, int, int]:
        """Return the tap along the places, if any, the stride, and the step of the tap."""
        index = self.indices[self.along]
        moved = [var for var in self.axes if uses(index, var) and not var.same_as(self.x)]
        if len(moved) > 1 or any(var not in self.summed for var in moved):
            raise Unknown("places depend on several axes")
        if self.axes[self.x] == 1:
            return None, 1, 1
        linear = sym.detect_linear_equation(index, [self.x, *moved])
        if not linear or not all(isinstance(each, IntImm) for each in linear[:-1]) or not self.starts_at(linear[-1]):
            raise Unknown("places are not by stride and step")
        tap = moved[0] if moved else None
        if tap is not None and (self.axes[tap] > _MOST_TAPS or sum(uses(each, tap) for each in self.indices) != 1):
            raise Unknown("too many taps")
        stride, step = int(linear[0]), int(linear[1]) if moved else 1
        if stride < 1 or step < 1:
            raise Unknown("windows go backwards")
        return tap, stride, step

    def starts_at(self, first: Expr) -> bool:
        """Return whether windows may start at a column, counted in the data: only at its first one."""
        return isinstance(first, IntImm) and int(first) == 0

    def _check_epilogue(self) -> None:
        """Map the axes of the epilogue to axes of the sum, in `epilogue`."""
        written = simple(self.total, self.total.body.indices)
        self.epilogue: dict[Var, Expr] = {}
        if self.last is None:
            if not self.total.body.buffer.same_as(self.original.params[-1]):
                raise Unknown("the sum is not the result")
            return
        for axis in self.last.iter_vars:
            if int(axis.iter_type) == _REDUCE:
                raise Unknown("the epilogue sums")
            if int(axis.dom.extent) == 1:
                self.epilogue[axis.var] = int64(0)
        for load in loads(self.last.body.value):
            if not load.source.same_as(self.total.body.buffer):
                continue
            for index, own in zip(simple(self.last, load.indices), written, strict=True):
                if isinstance(index, Var) and isinstance(own, Var):
                    if not self.epilogue.setdefault(index, own).same_as(own):
                        raise Unknown("the epilogue is not element-wise")
                elif not (isinstance(index, IntImm) and (isinstance(own, IntImm) or self.axes[own] == 1)):
                    raise Unknown("the epilogue is not element-wise")
        if len(self.epilogue) != len(self.last.iter_vars):
            raise Unknown("the epilogue repeats the sum")


def _plain(padding: SBlock) -> bool:
    """Return whether a block stores at its own axes; windows of rows write 0 for one of extent 1."""
    axes, indices = padding.iter_vars, padding.body.indices
    return len(axes) == len(indices) and all(
        index.same_as(axis.var) or (int(axis.dom.extent) == 1 and isinstance(index, IntImm))
        for axis, index in zip(axes, indices)
    )


def moved(value: Expr, axes: Iterable[Var]) -> list[TensorLoad]:
    """List the loads of an expression that depend on one of the axes."""
    known = list(axes)
    return [load for load in loads(value) if any(uses(load, var) for var in known)]


def less(value: Expr) -> tuple[int, Expr]:
    """Return the number taken from an expression, and the expression."""
    if isinstance(value, tirx.Sub) and isinstance(value.b, IntImm):
        return int(value.b), value.a
    if isinstance(value, tirx.Add) and isinstance(value.b, IntImm):
        return -int(value.b), value.a
    return 0, value
