"""Compute ranges of a call's result from ranges of its operands, operator by operator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING

from ..operators import ELEMENTWISE, RESHAPES
from .reshaped_ranges import ranges_before_reshape
from .slices import Range, along, part_shape, ranges_of, slice_value

if TYPE_CHECKING:
    from tvm.relax import Call, Expr

    from ..convolution.geometry import Geometry
    from ..dataflow import Dataflow

Ranges = tuple[Range, ...]
Slicer = Callable[["Expr", Ranges], "Expr"]
_SOFTMAX = frozenset({"relax.nn.softmax", "relax.nn.log_softmax"})


def slice_call(call: Call, taken: Ranges, graph: Dataflow, slice_of: Slicer) -> Expr | None:
    """Return an expression equal to the ranges `taken` of `call`; None if an element of it reads several positions.

    `slice_of` returns ranges of an operand. Axes are dropped through few operators.
    """
    name = graph.operator(call)
    if name not in _DROPPING and any(each.drop for each in taken):
        return None
    if graph.shape(call) is None or any(graph.shape(each) is None for each in graph.tensors(call)):
        return None
    if name in ELEMENTWISE:
        return graph.like(
            call, [slice_of(each, _align_ranges(each, call, taken, graph)) for each in graph.tensors(call)]
        )
    if name in _SOFTMAX or name == "relax.nn.layer_norm":
        return _along_other_axes(call, taken, graph, slice_of)
    rule = _RULES.get(name) or (_reshape if name in RESHAPES else None)
    return rule(call, taken, graph, slice_of) if rule else None


def _align_ranges(operand: Expr, call: Call, taken: Ranges, graph: Dataflow) -> Ranges:
    """Return the ranges of an operand that broadcasts to the result: none along axes that it lacks; dropped ones it repeats."""
    shape, whole = graph.static_shape(operand), graph.static_shape(call)
    missing = len(whole) - len(shape)
    found = []
    for each in taken:
        if each.axis >= missing and shape[each.axis - missing] == whole[each.axis]:
            found.append(replace(each, axis=each.axis - missing))
        elif each.axis >= missing and each.drop:
            found.append(Range(each.axis - missing, 0, 1, drop=True))
    return tuple(found)


def _along_other_axes(call: Call, taken: Ranges, graph: Dataflow, slice_of: Slicer) -> Expr | None:
    rank = len(graph.static_shape(call))
    attrs = call.attrs
    normalised = [attrs.axis] if graph.operator(call) in _SOFTMAX else attrs.axes
    if {int(axis) % rank for axis in normalised} & {each.axis for each in taken}:
        return None
    left_out = sum(each.drop and each.axis < int(normalised[0]) % rank for each in taken)
    part = slice_of(call.args[0], taken)
    if left_out:
        return getattr(graph.op.nn, graph.operator(call).removeprefix("relax.nn."))(
            part, int(attrs.axis) % rank - left_out
        )
    return graph.with_arguments(call, [part, *call.args[1:]])


def _transpose(call: Call, taken: Ranges, graph: Dataflow, slice_of: Slicer) -> Expr:
    axes = graph.axes(call)
    moved = tuple(replace(each, axis=axes[each.axis]) for each in taken)
    part, dropped = slice_of(call.args[0], moved), {each.axis for each in moved if each.drop}
    if not dropped:
        return graph.like(call, [part])
    left = [axis for axis in axes if axis not in dropped]
    order = [sorted(left).index(axis) for axis in left]
    shape = part_shape(graph.static_shape(call.args[0]), moved)
    turned = [axis for axis in order if shape[axis] > 1]
    if turned != sorted(turned):
        return graph.op.permute_dims(part, order)
    return part if order == sorted(order) else graph.op.reshape(part, [shape[axis] for axis in order])


def _concat(call: Call, taken: Ranges, graph: Dataflow, slice_of: Slicer) -> Expr | None:
    axis = int(call.attrs.axis or 0) % len(graph.static_shape(call))
    along = [each for each in taken if each.axis == axis]
    others = tuple(each for each in taken if each.axis != axis)
    fields = graph.fields(call.args[0])
    if not along:
        return graph.op.concat([slice_of(each, others) for each in fields], axis) if fields else None
    wanted, parts, begin = along[0], [], 0
    for each in fields if wanted.step == 1 else ():
        extent = graph.static_shape(each)[axis]
        low, high = max(wanted.begin - begin, 0), min(wanted.end - begin, extent)
        if low < high:
            parts.append(slice_of(each, others if high - low == extent else (Range(axis, low, high), *others)))
        begin += extent
    return graph.op.concat(parts, axis) if len(parts) > 1 else parts[0] if parts else None


def _matmul(call: Call, taken: Ranges, graph: Dataflow, slice_of: Slicer) -> Expr | None:
    left, right = call.args
    shapes, rank = (graph.static_shape(left), graph.static_shape(right)), len(graph.static_shape(call))
    if min(map(len, shapes)) < 2 or any(each.drop and each.axis >= rank - 2 for each in taken):
        return None
    ranges: tuple[list[Range], list[Range]] = ([], [])
    for each in taken:
        for side, matrix in enumerate((rank - 2, rank - 1)):
            axis = each.axis - rank + len(shapes[side])
            is_row_or_column = each.axis >= rank - 2
            if axis >= 0 and (each.axis == matrix if is_row_or_column else shapes[side][axis] > 1):
                ranges[side].append(replace(each, axis=axis))
            elif axis >= 0 and each.drop:
                ranges[side].append(Range(axis, 0, 1, drop=True))
    # each row of the product needs all of the second operand: it is made first, so that the rows may be streamed
    second = slice_of(right, tuple(ranges[1]))
    return graph.like(call, [slice_of(left, tuple(ranges[0])), second])


def _convolution(call: Call, taken: Ranges, graph: Dataflow, slice_of: Slicer) -> Expr | None:
    layouts = (call.attrs.data_layout, call.attrs.kernel_layout, call.attrs.out_layout)
    plain = all(layout[:2] in ("NC", "OI", "") and (layout.isupper() or not layout) for layout in layouts)
    if not plain:
        return None
    batch = tuple(each for each in taken if each.axis == 0)
    channels = tuple(replace(each, axis=0) for each in taken if each.axis == 1)
    positions = tuple(each for each in taken if each.axis > 1)
    if channels and int(call.attrs.groups) != 1:
        return None
    if (narrowed := _narrow(call, positions, graph)) is not None:
        geometry, read = narrowed
        return geometry.call(slice_of(call.args[0], (*batch, *read)), slice_of(call.args[1], channels))
    if not (batch or channels):
        return None
    # positions of the plane are left to a slice behind it
    return slice_value(
        graph.like(call, [slice_of(call.args[0], batch), slice_of(call.args[1], channels)]), positions, graph
    )


def _narrow(call: Call, positions: Ranges, graph: Dataflow) -> tuple[Geometry, Ranges] | None:
    """Return a convolution that computes these positions alone, and the ranges of the data it reads.

    None for a convolution of mixed dtypes, for positions of padding alone, and if the part would be alive next to the whole data
    and is larger than the elements that are not computed.
    """
    from ..convolution.geometry import Geometry

    geometry = Geometry.of(call) if positions else None
    if geometry is None:
        return None
    data, kernel = graph.static_shape(call.args[0]), graph.static_shape(call.args[1])
    strides, before, after = list(geometry.strides), list(geometry.before), list(geometry.after)
    read = []
    for each in positions:
        at = each.axis - 2
        first = each.begin * strides[at] - before[at]
        strides[at] *= each.step
        last = first + (each.extent - 1) * strides[at] + (kernel[each.axis] - 1) * geometry.dilation[at]
        part = Range(each.axis, max(first, 0), min(last + 1, data[each.axis]))
        before[at], after[at] = max(-first, 0), max(last + 1 - data[each.axis], 0)
        if part.begin >= part.end:
            return None
        if part.extent < data[each.axis]:
            read.append(part)
    if read and not _is_taken_apart(call, graph):
        left = prod(graph.static_shape(call)) - prod(part_shape(graph.static_shape(call), positions))
        if prod(part_shape(data, read)) > left:
            return None
    return replace(geometry, strides=tuple(strides), before=tuple(before), after=tuple(after)), tuple(read)


def _is_taken_apart(call: Call, graph: Dataflow) -> bool:
    """Return whether the data of a convolution is computed, and slices alone read it besides."""
    data = call.args[0]
    others = [user for user in graph.users(data) if not graph.value(user).same_as(call)]
    return bool(graph.operator(data)) and all(
        graph.operator(graph.value(user)) == "relax.strided_slice" for user in others
    )


def _reshape(call: Call, taken: Ranges, graph: Dataflow, slice_of: Slicer) -> Expr | None:
    before, after = graph.static_shape(call.args[0]), graph.static_shape(call)
    moved = ranges_before_reshape(before, after, taken)
    return None if moved is None else _in_shape(slice_of(call.args[0], moved), part_shape(after, taken), graph)


def _take(call: Call, taken: Ranges, graph: Dataflow, slice_of: Slicer) -> Expr | None:
    """Return the part of a value at one position."""
    position = graph.constant(call.args[1])
    if position is None or position.ndim or call.attrs.axis is None:
        return None
    shape = graph.static_shape(call.args[0])
    axis = int(call.attrs.axis) % len(shape)
    begin = int(position) % shape[axis]
    others = (replace(each, axis=each.axis + (each.axis >= axis)) for each in taken)
    part = slice_of(call.args[0], (*others, Range(axis, begin, begin + 1, drop=True)))
    return _in_shape(part, part_shape(graph.static_shape(call), taken), graph)


def _slice(call: Call, taken: Ranges, graph: Dataflow, slice_of: Slicer) -> Expr | None:
    """Return one slice for a slice of a slice."""
    first = ranges_of(call, graph)
    if first is None:
        return None
    whole = {each.axis: each for each in first}
    for each in taken:
        before = along(first, each.axis, graph.static_shape(call)[each.axis])
        begin, step = before.begin + each.begin * before.step, before.step * each.step
        end = begin + (each.extent - 1) * step + 1 if each.extent else begin
        whole[each.axis] = Range(each.axis, begin, end, step, each.drop)
    return slice_of(call.args[0], tuple(whole[axis] for axis in sorted(whole)))


def _in_shape(x: Expr, shape: Sequence[int], graph: Dataflow) -> Expr:
    return x if graph.shape(x) == tuple(shape) else graph.op.reshape(x, list(shape))


#: operators through which axes may be dropped
_DROPPING = (
    ELEMENTWISE | RESHAPES | _SOFTMAX | {"relax.permute_dims", "relax.matmul", "relax.take", "relax.strided_slice"}
)
_RULES: dict[str, Callable[[Call, Ranges, Dataflow, Slicer], Expr | None]] = {
    "relax.permute_dims": _transpose,
    "relax.concat": _concat,
    "relax.take": _take,
    "relax.strided_slice": _slice,
    "relax.matmul": _matmul,
    "relax.nn.conv1d": _convolution,
    "relax.nn.conv2d": _convolution,
    "relax.nn.conv3d": _convolution,
}
