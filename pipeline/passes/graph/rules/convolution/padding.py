"""Read constant padding: the operator, and concatenations with constants of one value."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tvm import relax

from ..dataflow import MOVES, Dataflow, dtype_of, shape_of, static_shape
from ..operators import AVERAGE_POOLS, MAX_POOLS, NEVER_NEGATIVE
from .constants import FLOATS

#: operators that keep a tensor of numbers ≥ 0 so
_KEEP_SIGN = MAX_POOLS | AVERAGE_POOLS | MOVES | {"relax.strided_slice"}


@dataclass(frozen=True)
class Padding:
    """Hold padded data, the widths around each axis, and the value around it."""

    data: relax.Expr
    before: tuple[int, ...]
    after: tuple[int, ...]
    value: float

    def along(self, axes: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
        """Return the widths of these axes; None if others are padded too."""
        if any(self.before[axis] or self.after[axis] for axis in range(len(self.before)) if axis not in axes):
            return None
        return tuple(self.before[axis] for axis in axes), tuple(self.after[axis] for axis in axes)

    def is_below(self, graph: Dataflow) -> bool:
        """Return whether no element of the data lies under the value around it."""
        return self.value == -math.inf or (self.value <= 0 and _is_never_negative(self.data, graph))


def windows_meet_data(pooling: relax.Call, padding: Sequence[int]) -> bool:
    """Return whether each window of a pooling meets data, next to so much padding."""
    attrs = pooling.attrs
    dense = not attrs.ceil_mode and all(int(each) == 1 for each in attrs.dilation)
    return dense and all(map(int.__lt__, padding, 2 * [int(size) for size in attrs.pool_size]))


def padding_of(call: relax.Call, graph: Dataflow) -> Padding | None:
    """Read a call that pads with one value; None for another, or negative widths."""
    if dtype_of(call) not in FLOATS:
        return None
    if graph.operator(call) == "relax.nn.pad":
        widths = [int(each) for each in call.attrs.pad_width]
        if str(call.attrs.pad_mode) != "constant" or min(widths, default=-1) < 0:
            return None
        return Padding(call.args[0], tuple(widths[::2]), tuple(widths[1::2]), float(call.attrs.pad_value))
    return _concatenation(call, graph)


def _concatenation(call: relax.Call, graph: Dataflow) -> Padding | None:
    fields, shape = graph.fields(call.args[0]), shape_of(call)
    uniform = [graph.uniform(field) for field in fields]
    computed = [place for place, value in enumerate(uniform) if value is None]
    if len(computed) != 1 or len(fields) < 2 or shape is None:
        return None
    place, axis = computed[0], int(call.attrs.axis) % len(shape)
    before, after = [0] * len(shape), [0] * len(shape)
    values = set()
    for number, (field, value) in enumerate(zip(fields, uniform)):
        if value is not None:
            values.add(float(value))
            side = before if number < place else after
            side[axis] += static_shape(field)[axis]
    return Padding(fields[place], tuple(before), tuple(after), values.pop()) if len(values) == 1 else None


def _is_never_negative(expr: relax.Expr, graph: Dataflow) -> bool:
    constant = graph.constant(expr)
    if constant is not None:
        return bool((constant >= 0).all())
    operator, call = graph.operator(expr), graph.value(expr)
    if operator in NEVER_NEGATIVE:
        return True
    if operator == "relax.clip":
        low = getattr(call.args[1], "value", None)
        return low is not None and float(low) >= 0
    if operator == "relax.maximum":
        return any(_is_never_negative(each, graph) for each in call.args)
    if operator == "relax.minimum":
        return all(_is_never_negative(each, graph) for each in call.args)
    return operator in _KEEP_SIGN and _is_never_negative(call.args[0], graph)
