"""Match a sum of integer products with a weight: optional padding, the sum, and an optional element-wise epilogue."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from functools import lru_cache
from itertools import product

from tvm import sym, tirx
from tvm.ir import Expr, TensorLoad, Var
from tvm.s_tir import SBlock
from tvm.tirx import IntImm, PrimFunc

from ....tir.expressions import is_choice, loads, unconverted, uses
from ....tir.index_grid import NoMatch
from ....tir.inlining import inlined
from ....tir.loop_nests import blocks_of, int64, simple, stores_at_axes

_REDUCE = 2
#: most taps along a row, since they are unrolled
_MOST_TAPS = 16


class IntegerSum:
    """Read the parts of a kernel: `padding`, `total` and `last` are its blocks, `weight` and `value` the factors.

    The sum is int32 + int32(int16(data) − zero point) · int32(weight), the factors in either order.

    Axes of the sum: `f` moves the weight alone, along its dimension `filters`, or both factors if the sum is `depthwise`;
    `x` the data alone, along its dimension `along`, by `stride`; `tap` moves the data along the same dimension, by `step`.
    `inside` is a value that is not padding, `border` the condition for it to be. Raises NoMatch for other forms.
    """

    def __init__(self, kernel: PrimFunc, repackable: frozenset[int], depthwise: bool):
        self.original = kernel
        blocks = blocks_of(kernel)
        places = [number for number, block in enumerate(blocks) if block.init is not None]
        if len(places) != 1 or places[0] > 1 or len(blocks) - places[0] > 2:
            raise NoMatch("more than padding, a sum and an epilogue")
        self.padding = blocks[0] if places[0] == 1 else None
        self.total, self.last = blocks[places[0]], blocks[-1] if len(blocks) - places[0] == 2 else None
        self.axes = {axis.var: int(axis.dom.extent) for axis in self.total.iter_vars}
        self.summed = [each.var for each in self.total.iter_vars if int(each.iter_type) == _REDUCE]
        #: values of summed axes of extent 1
        self.units: dict[Var, Expr] = {var: int64(0) for var in self.summed if self.axes[var] == 1}
        self.weight, self.value = self._factors(repackable, depthwise)
        self.f, self.filters = self._filters(depthwise)
        self.number = next(n for n, param in enumerate(kernel.params) if param.same_as(self.weight.source))
        self.data = self._data()
        self.indices = simple(self.total, self.data.indices)
        self.x, self.along = self._places()
        #: the first column of the windows in the data
        self.first: Expr = int64(0)
        self.tap, self.stride, self.step = self._walk()
        self.taps = 1 if self.tap is None else self.axes[self.tap]
        self._check_epilogue()
        self.border: Expr | None = None
        self.inside, self._raw = self.value, self.data
        if self.padding is not None:
            self._read_padding(self.padding)

    def _factors(self, repackable: frozenset[int], depthwise: bool) -> tuple[TensorLoad, Expr]:
        """Return the load of the weight, and the other factor in int16."""
        value, own = self.total.body.value, self.total.body.buffer
        products = isinstance(value, tirx.Add) and isinstance(value.b, tirx.Mul) and str(value.ty.dtype) == "int32"
        if not products or not isinstance(value.a, TensorLoad) or not value.a.source.same_as(own):
            raise NoMatch("no sum of integer products")
        spatial = [var for var in self.axes if var not in self.summed and self.axes[var] > 1]
        weights = [self.original.params[number] for number in sorted(repackable)]
        factors = (value.b.a, value.b.b), (value.b.b, value.b.a)
        for param, (one, other) in product(weights, factors):
            load = unconverted(one)
            short = isinstance(other, tirx.Cast) and str(other.value.ty.dtype) == "int16"
            if not short or not isinstance(load, TensorLoad) or not load.source.same_as(param):
                continue
            if not depthwise:
                return load, other.value
            load = tirx.BufferLoad(load.source, simple(self.total, load.indices))
            if sum(uses(load, var) for var in spatial) == 1:
                return load, other.value
        raise NoMatch("no weight that may be repacked beside a factor in int16")

    def _filters(self, depthwise: bool) -> tuple[Var, int]:
        for place, index in enumerate(self.weight.indices):
            if not isinstance(index, Var) or index not in self.axes or index in self.summed or self.axes[index] == 1:
                continue
            elsewhere = any(uses(each, index) for n, each in enumerate(self.weight.indices) if n != place)
            if not elsewhere and uses(self.value, index) == depthwise:
                return index, place
        raise NoMatch("no axis moves the weight as it should")

    def _data(self) -> TensorLoad:
        """Return the load of the data; another may only be of a zero point computed at run time, the same for all sums."""
        found = _moved(self.value, self.axes)
        if len(found) != 1 or any(
            load.source.same_as(found[0].source) for load in loads(self.value) if not load.same_as(found[0])
        ):
            raise NoMatch("the other factor reads more than one operand")
        return found[0]

    def _read_padding(self, padding: SBlock) -> None:
        """Read a value that is not padding, and the condition for it to be."""
        reads = self.data.source.same_as(padding.body.buffer) and self.value.same_as(self.data)
        if not stores_at_axes(padding) or not is_choice(padding.body.value) or not reads:
            raise NoMatch("the padding is not a select at its own axes")
        self.border, self.inside, nothing = padding.body.value.args
        if not isinstance(nothing, IntImm) or int(nothing):
            raise NoMatch("the padding is not zero")
        found = _moved(self.inside, [axis.var for axis in padding.iter_vars])
        if len(found) != 1:
            raise NoMatch("the data is not a number less its zero point")
        self._raw = found[0]

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
            raise NoMatch("places depend on several axes")
        if self.axes[self.x] == 1:
            return None, 1, 1
        linear = sym.detect_linear_equation(index, [self.x, *moved])
        if not linear or not all(isinstance(each, IntImm) for each in linear[:-1]):
            raise NoMatch("places are not by stride and step")
        self.first = linear[-1]
        tap = moved[0] if moved else None
        if tap is not None and (self.axes[tap] > _MOST_TAPS or sum(uses(each, tap) for each in self.indices) != 1):
            raise NoMatch("too many taps")
        stride, step = int(linear[0]), int(linear[1]) if moved else 1
        if stride < 1 or step < 1:
            raise NoMatch("windows go backwards")
        return tap, stride, step

    def _check_epilogue(self) -> None:
        """Map the axes of the epilogue to axes of the sum, in `epilogue`."""
        written = simple(self.total, self.total.body.indices)
        self.epilogue: dict[Var, Expr] = {}
        if self.last is None:
            if not self.total.body.buffer.same_as(self.original.params[-1]):
                raise NoMatch("the sum is not the result")
            return
        for axis in self.last.iter_vars:
            if int(axis.iter_type) == _REDUCE:
                raise NoMatch("the epilogue sums")
            if int(axis.dom.extent) == 1:
                self.epilogue[axis.var] = int64(0)
        for load in loads(self.last.body.value):
            if not load.source.same_as(self.total.body.buffer):
                continue
            for index, own in zip(simple(self.last, load.indices), written, strict=True):
                if isinstance(index, Var) and isinstance(own, Var):
                    if not self.epilogue.setdefault(index, own).same_as(own):
                        raise NoMatch("the epilogue is not element-wise")
                elif not (isinstance(index, IntImm) and (isinstance(own, IntImm) or self.axes[own] == 1)):
                    raise NoMatch("the epilogue is not element-wise")
        if len(self.epilogue) != len(self.last.iter_vars):
            raise NoMatch("the epilogue repeats the sum")


@lru_cache(1 << 8)
def integer_sum(kernel: PrimFunc, repackable: frozenset[int], depthwise: bool) -> IntegerSum | None:
    """Return the parts of a kernel; None for other forms. All rules for integers share them."""
    with suppress(NoMatch):
        return IntegerSum(inlined(kernel), repackable, depthwise)
    return None


def _moved(value: Expr, axes: Iterable[Var]) -> list[TensorLoad]:
    """List the loads of an expression that depend on one of the axes."""
    known = list(axes)
    return [load for load in loads(value) if any(uses(load, var) for var in known)]


def less(value: Expr) -> tuple[Expr, Expr]:
    """Return the zero point taken from an expression, and the expression."""
    if isinstance(value, tirx.Sub):
        return value.b, value.a
    if isinstance(value, tirx.Add) and isinstance(value.b, IntImm):
        return tirx.const(-int(value.b), "int16"), value.a
    return tirx.const(0, "int16"), value
