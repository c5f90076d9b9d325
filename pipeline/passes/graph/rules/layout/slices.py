"""Read slices and items of splits as ranges along one axis."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tvm.relax import Call, Expr

    from ..dataflow import Dataflow

_SLICE, _SPLIT = "relax.strided_slice", "relax.split"


@dataclass(frozen=True)
class Range:
    """Elements of an axis: from `begin`, `step` apart, `end` excluded; counted from 0, within the axis.

    `drop` leaves out the axis, of one element.
    """

    axis: int
    begin: int
    end: int
    step: int = 1
    drop: bool = False

    @property
    def extent(self) -> int:
        return max(0, -((self.begin - self.end) // self.step))


def ranges_of(call: Call, graph: Dataflow) -> tuple[Range, ...] | None:
    """Return the ranges a slice takes, whole axes left out; None for slices backwards and for other calls."""
    shape = graph.shape(call.args[0]) if graph.operator(call) == _SLICE else None
    if shape is None or graph.shape(call) is None or len(call.args) < 4:
        return None
    given = [graph.fields(each) for each in call.args[1:5]]
    numbers = [[number for each in fields if (number := _int(each)) is not None] for fields in given]
    if len({len(each) for each in (*given, *numbers)}) > 1:
        return None
    axes, begins, ends, steps = numbers if len(numbers) > 3 else [*numbers, [1] * len(given[0])]
    found = []
    for axis, begin, end, step in zip(axes, begins, ends, steps):
        if step <= 0:
            return None
        axis %= len(shape)
        begin, end = (min(max(each + shape[axis] if each < 0 else each, 0), shape[axis]) for each in (begin, end))
        end = max(begin, end)
        if (begin, end, step) != (0, shape[axis], 1):
            found.append(Range(axis, begin, end, step))
    return (
        tuple(found)
        if tuple(part_shape(shape, found)) == graph.shape(call) and len({e.axis for e in found}) == len(found)
        else None
    )


def part_shape(shape: Sequence[int], ranges: Iterable[Range]) -> list[int]:
    """Return the shape of the part of a value that ranges take."""
    taken = {each.axis: each for each in ranges}
    found = [taken.get(axis, Range(axis, 0, extent)) for axis, extent in enumerate(shape)]
    return [each.extent for each in found if not each.drop]


def along(ranges: Iterable[Range], axis: int, extent: int) -> Range:
    """Return the range along an axis: all of its `extent` elements, if there is none."""
    return next((each for each in ranges if each.axis == axis), Range(axis, 0, extent))


def _int(value: Expr) -> int | None:
    number = getattr(value, "value", None)
    return int(number) if number is not None and hasattr(number, "__int__") else None


def slice_constant(expr: Expr, ranges: Iterable[Range], graph: Dataflow) -> Expr | None:
    """Return the ranges of a constant as a constant; None for any other value."""
    array = graph.constant(expr)
    if array is None:
        return None
    index: list[slice | int] = [slice(None)] * array.ndim
    for each in ranges:
        index[each.axis] = each.begin if each.drop else slice(each.begin, each.end, each.step)
    return graph.const(array[tuple(index)])


def slice_value(x: Expr, ranges: tuple[Range, ...], graph: Dataflow) -> Expr:
    """Return a call that takes these ranges of `x`; `x` itself for none."""
    if not ranges:
        return x
    axes, begins, ends = ([getattr(each, field) for each in ranges] for field in ("axis", "begin", "end"))
    steps = [each.step for each in ranges]
    return graph.op.strided_slice(x, axes, begins, ends, *([steps] if any(step > 1 for step in steps) else []))


def part_of(expr: Expr, graph: Dataflow) -> tuple[Expr, Range] | None:
    """Return value and range of a split's item; None for any other value."""
    value = graph.value(expr)
    producer = graph.call(getattr(value, "tuple_value", value), _SPLIT)
    shape = None if producer is None else graph.shape(producer.args[0])
    if producer is None or shape is None or not hasattr(value, "index"):
        return None
    axis = int(producer.attrs.axis) % len(shape)
    extents = [int(field.shape[axis]) for field in producer.ty.fields]
    begin = sum(extents[: value.index])
    return producer.args[0], Range(axis, begin, begin + extents[value.index])
