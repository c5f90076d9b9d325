"""`push-slices-up`: compute only the elements that are read.

    slice(relu(x + y))  →  relu(slice(x) + slice(y))        (x · w)[rows]  →  x[rows] · w        take(f(x), 0)  →  f(take(x, 0))

A slice, an item of a split with unread ones, or a `take` of one position moves up through element-wise operators,
transposes, reshapes that keep it together, concatenations, matrix products, softmax and layer norm along other axes, and
convolutions. Along positions, convolutions read less padding, or a part of data computed for them alone; else that slice
stays behind. Legal along axes on which each element of the result depends on one position of the operands, and on
positions of convolutions, which depend on windows. It pays, and is done, where slices alone read the value, and take fewer
elements of it together than it has, and of no constant that something else reads whole. Slices that overlap take theirs
from one part, computed once. It also pays where they divide the output channels of a convolution: then its parts are never
alive together. Exact.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from ..operators import ELEMENTWISE
from ..rule import Rule
from .sliced_operands import slice_call
from .slices import Range, along, part_of, ranges_of, slice_constant, slice_value

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tvm.relax import Call, Expr, Var

    from ..dataflow import Dataflow

_SLICE, _TAKE, _SPLIT = "relax.strided_slice", "relax.take", "relax.split"
Ranges = tuple[Range, ...]


class PushSlicesUp(Rule):
    """Slice operands instead of results."""

    name = "push-slices-up"
    summary = "move slices above the operators they read from, so that only what is read is computed"

    def replacements(self, graph: Dataflow) -> Mapping[Var, Expr]:
        found: dict[Var, Expr] = {}
        memo: dict[object, Expr] = {}
        for var, call in graph.calls(_SLICE, _TAKE):
            if (taken := _ranges_of(call, graph)) is None:
                continue
            inner = graph.call(call.args[0], _SLICE) if graph.operator(call) == _SLICE else None
            if inner is not None:
                computed = slice_call(inner, taken, graph, lambda x, ranges: slice_value(x, ranges, graph))
            else:
                computed = _part(call, taken, graph, memo)
            if computed is not None:
                found[var] = computed if graph.operator(call) == _SLICE else graph.op.squeeze(computed, [taken[0].axis])
        found |= {var: slice_value(source, (part,), graph) for var, (source, part) in _items_beside_unread_ones(graph)}
        return found


def _ranges_of(call: Call, graph: Dataflow) -> Ranges | None:
    """Return the ranges that a slice, or a `take` of one position, reads; None for any other."""
    if graph.operator(call) == _SLICE:
        return ranges_of(call, graph) or None
    shape, position = graph.shape(call.args[0]), graph.constant(call.args[1])
    if shape is None or position is None or position.ndim or call.attrs.axis is None:
        return None
    axis = int(call.attrs.axis) % len(shape)
    begin = int(position) + (shape[axis] if int(position) < 0 else 0)
    return (Range(axis, begin, begin + 1),) if 0 <= begin < shape[axis] and shape[axis] > 1 else None


def _pays(expr: Expr, read: Mapping[Ranges, int], graph: Dataflow) -> bool:
    """Return whether a value's only readers, slices, take fewer elements than it has, or single channels."""
    shape = graph.shape(expr) or ()
    taken, whole = sum(read.values()), prod(shape)
    return 0 < taken < whole or (
        bool(read) and taken == whole and _are_channels(read, shape) and _is_convolved(expr, graph)
    )


def _cover(read: Mapping[Ranges, int], shape: Sequence[int]) -> Ranges | None:
    """Return the ranges around all slices that alone `read` a value of a shape.

    None if these have more elements than the slices together, or as many as the value.
    """
    if len(read) < 2:
        return None
    around = []
    for axis, extent in enumerate(shape):
        found = [along(ranges, axis, extent) for ranges in read]
        step = max(each.step if each.extent > 1 else 1 for each in found)
        if any((each.extent > 1 and each.step != step) or (each.begin - found[0].begin) % step for each in found):
            return None
        around.append(Range(axis, min(each.begin for each in found), max(each.end for each in found), step))
    elements = prod(each.extent for each in around)
    if elements > sum(read.values()) or elements == prod(shape):
        return None
    return tuple(each for each in around if each.extent < shape[each.axis])


def _within(taken: Ranges, joined: Ranges, shape: Sequence[int]) -> Ranges:
    """Return the ranges `taken` of a value of this shape, of its part `joined`; whole axes are left out."""
    found = []
    for around in joined:
        each = along(taken, around.axis, shape[around.axis])
        begin = (each.begin - around.begin) // around.step
        if each.extent < around.extent:
            found.append(Range(each.axis, begin, begin + each.extent))
    return (*found, *(each for each in taken if all(each.axis != around.axis for around in joined)))


def _read(expr: Expr, graph: Dataflow) -> dict[Ranges, int]:
    """Return the ranges that slices read of a computed value, with their elements; none if anything else reads it."""
    if not graph.operator(expr) or not graph.is_variable(expr) or graph.is_output(expr) or graph.shape(expr) is None:
        return {}
    read: dict[Ranges, int] = {}
    for user in graph.users(expr):
        call = graph.value(user)
        ranges = _ranges_of(call, graph) if graph.operator(call) in (_SLICE, _TAKE) else None
        if ranges is None:
            return {}
        read[ranges] = prod(graph.static_shape(call))
    return read


def _are_channels(read: Mapping[Ranges, int], shape: Sequence[int]) -> bool:
    """Return whether ranges are consecutive channels, together all of them."""
    if len(read) < 2 or any(len(ranges) != 1 or ranges[0].axis != 1 or ranges[0].step != 1 for ranges in read):
        return False
    bounds = sorted((each.begin, each.end) for (each,) in read)
    return [begin for begin, _ in bounds] + [shape[1]] == [0] + [end for _, end in bounds]


def _is_convolved(expr: Expr, graph: Dataflow) -> bool:
    """Return whether a value is an ungrouped convolution by unshared constants, or element-wise over one."""
    from ..convolution.geometry import CONVOLUTIONS

    call = graph.value(expr)
    if graph.operator(call) in ELEMENTWISE:
        computed = [each for each in graph.tensors(call) if graph.constant(each) is None]
        return (
            len(computed) == 1
            and graph.uses(computed[0]) == 1
            and graph.shape(computed[0]) == graph.shape(call)
            and _is_convolved(computed[0], graph)
        )
    weight = call.args[1] if graph.operator(call) in CONVOLUTIONS else None
    return (
        weight is not None
        and int(call.attrs.groups) == 1
        and graph.constant(weight) is not None
        and not graph.is_shared(weight)
    )


def _items_beside_unread_ones(graph: Dataflow) -> list[tuple[Var, tuple[Expr, Range]]]:
    """List the items of splits of which other items are never read, with the parts they are."""
    splits: dict[Expr, dict[int, list[Var]]] = {}
    for var, item, producer in graph.items():
        if graph.operator(producer) == _SPLIT:
            splits.setdefault(producer, {}).setdefault(item.index, []).append(var)
    return [
        (var, part)
        for split, items in splits.items()
        if len(items) < len(split.ty.fields)
        for variables in items.values()
        for var in variables
        if (part := part_of(var, graph)) is not None
    ]


def _part(call: Call, taken: Ranges, graph: Dataflow, memo: dict[object, Expr]) -> Expr | None:
    """Return the ranges that a slice takes, from a part of its operand computed alone; None if that does not pay."""
    source = call.args[0]
    read = _read(source, graph)
    shape = graph.shape(source) or ()
    for ranges in (_cover(read, shape), taken if _pays(source, read, graph) else None):
        new = _compute_slice(graph.value(source), ranges, graph, memo) if ranges else None
        if ranges and new is not None and (ranges == taken or graph.operator(new) != _SLICE):
            return slice_value(new, _within(taken, ranges, shape), graph)
    return None


def _compute_slice(call: Expr, taken: Ranges, graph: Dataflow, memo: dict[object, Expr]) -> Expr | None:
    """Return the ranges of a call's result, computed from slices of its operands; None if that is not possible."""
    shared: list[Expr] = []

    def slice_of(expr: Expr, ranges: Ranges) -> Expr:
        if not ranges:
            return expr
        if graph.constant(expr) is not None and graph.is_shared(expr):
            shared.append(expr)
        key = (graph.identity(expr), ranges)
        if key not in memo:
            constant = slice_constant(expr, ranges, graph)
            memo[key] = slice_value(expr, ranges, graph) if constant is None else constant
        return memo[key]

    key = (graph.identity(call), taken, "computed")
    if key not in memo:
        new = slice_call(call, taken, graph, slice_of)
        if new is None or shared:
            return None
        memo[key] = new
    return memo[key]
