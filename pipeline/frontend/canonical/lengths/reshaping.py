"""Say how operators that move, cut or repeat rows work on values of open length."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from .extent import Extent, Sizes, at_bound, is_open
from .open_graph import Open, Reader


def shape_of(reader: Reader) -> list[Open | None]:
    """Build the shape of a value, with the length at its place."""
    extent, sizes = reader.only, reader.shape(0)
    start, end = (reader.get(name) for name in ("start", "end"))
    chosen = range(len(sizes))[start:end]
    made = [extent.length if axis == extent.axis else reader.build.integers(sizes[axis]) for axis in chosen]
    reader.build.node("Concat", *made, result=reader.result, axis=0)
    if extent.axis in chosen:
        found = np.array([sizes[axis] for axis in chosen], dtype=object)
        found[extent.axis - chosen.start] = Extent(extent.length, extent.bound)
        reader.graph.held[reader.result] = found
    return [None]


def size_of(reader: Reader) -> list[Open | None]:
    """Build the number of elements of a value."""
    extent, sizes = reader.only, reader.shape(0)
    others = math.prod(sizes) // extent.bound
    length = reader.build.node("Mul", extent.length, reader.build.integers(others))
    reader.build.node("Reshape", length, reader.build.integers(), result=reader.result)
    reader.graph.held[reader.result] = np.array(Extent(extent.length, extent.bound, others), dtype=object)
    return [None]


def reshape(reader: Reader) -> list[Open | None]:
    """Keep the order of elements: rows within the length stay in front along the new axis."""
    extent, before = reader.only, reader.shape(0)
    in_front, own = math.prod(before[: extent.axis]), reader.graph.extent_of(extent)
    wanted = _wanted_shape(reader, before)
    places = [place for place, size in enumerate(wanted) if isinstance(size, Extent)]
    rest = math.prod(int(size) for size in wanted if not isinstance(size, Extent))
    if len(places) != 1 or rest == 0:
        reader.refuse("its shape has not one open axis")
    (axis,) = places
    size = wanted[axis]
    if (size.length, size.scale * rest, size.offset) != (own.length, math.prod(before) // own.bound, 0):
        reader.refuse("its shape does not follow the length")
    if math.prod(int(each) for each in wanted[:axis]) != in_front:
        reader.refuse("rows would not stay together")
    shape = at_bound(np.array(wanted, dtype=object))
    reader.build.node("Reshape", reader.input[0], reader.build.integers(*shape), result=reader.result)
    return [Open(axis, reader.graph.length_of(reader.build, size), size.largest, extent.zero)]


def _wanted_shape(reader: Reader, before: tuple[int, ...]) -> list:
    """Return the new shape, with the extent that the length gives it."""
    extent = reader.only
    own: list = list(before)
    own[extent.axis] = extents = reader.graph.extent_of(extent)
    if reader.op_type == "Flatten":
        axis = int(reader.get("axis", 1))
        axis += len(before) if axis < 0 else 0
        return [math.prod(own[:axis], start=1), math.prod(own[axis:], start=1)]
    if reader.open(1) is not None:
        reader.refuse("the data decide the number of axes")
    wanted = list(reader.held(1))
    zeros = not reader.get("allowzero", 0)
    wanted = [
        own[place] if zeros and not isinstance(size, Extent) and size == 0 and place < len(own) else size
        for place, size in enumerate(wanted)
    ]
    free = [place for place, size in enumerate(wanted) if not isinstance(size, Extent) and size == -1]
    if free:
        rest = [size for place, size in enumerate(wanted) if place not in free]
        opens = [size for size in rest if isinstance(size, Extent)]
        known = math.prod(int(size) for size in rest if not isinstance(size, Extent))
        total, scale = math.prod(before) // extents.bound, opens[0].scale if opens else 1
        if len(free) > 1 or len(opens) > 1 or known == 0 or total % (known * scale):
            reader.refuse("its shape does not follow the length")
        share = total // (known * scale)
        wanted[free[0]] = share if opens else replace(extents, scale=share)
    return wanted


def slice_rows(reader: Reader) -> list[Open | None]:
    """Cut rows from the front, or up to a number, along the open axis; others along any other."""
    extent, before = reader.open(0), reader.shape(0)
    if any(reader.opens[1:]):
        reader.refuse("the data decide the number of axes")
    starts, ends = reader.held(1), reader.held(2)
    axes = [int(each) % len(before) for each in reader.held(3)] if reader.has(3) else list(range(len(starts)))
    steps = reader.held(4) if reader.has(4) else np.ones(len(starts), object)
    result = extent
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        opens = any(isinstance(each, Extent) for each in (start, end))
        if not opens and (extent is None or axis != extent.axis):
            continue
        if extent is not None and axis != extent.axis:
            reader.refuse("two of its axes are of open length")
        result = _cut(reader, axis, before[axis], start, end, step)
    copied = reader.keep()
    if result is not None and result is not extent:
        axis = result.axis
        place = axes.index(axis)
        begin = int(starts[place])
        for operand, value in ((1, begin), (2, begin + result.bound)):
            changed = (starts, ends)[operand - 1].copy()
            changed[place] = value
            copied.input[operand] = reader.build.constant(at_bound(changed).astype(reader.dtype(operand)))
    return [result]


def _cut(reader: Reader, axis: int, size: int, start: int | Extent, end: int | Extent, step: int | Extent) -> Open:
    """Return the extent of rows `start` to `end` of an axis that is open, or that an open end cuts."""
    extent = reader.open(0)
    if isinstance(start, Extent) or isinstance(step, Extent):
        reader.refuse("the data decide its start or its step")
    if start < 0 or step != 1:
        reader.refuse("it counts from the end, or backwards")
    length, bound, zero = ("", size, False) if extent is None else (extent.length, extent.bound, extent.zero)
    if extent is not None and isinstance(end, Extent):
        end = reader.graph.number_of(end, length)
    if isinstance(end, Extent):
        if end.scale < 1 or (extent is not None and (end.length, end.is_length) != (length, True)):
            reader.refuse("its end is not that of its rows")
        if extent is None:
            length, bound = reader.graph.rows_before(reader.build, end, size)
    else:
        if end < 0:
            reader.refuse("it counts from the end")
        if end < bound:
            length, bound = reader.graph.length(reader.build, "min", length, end), end
    if start:
        length, bound = reader.graph.length(reader.build, "minus", length, start), bound - start
    if bound < 1:
        reader.refuse("it selects nothing")
    return Open(axis, length, bound, zero)


def concat(reader: Reader) -> list[Open | None]:
    """Join along another axis, or rows, of open length or not."""
    axis = int(reader.attributes["axis"]) % len(reader.shape(0))
    if all(each is None or each.axis == axis for each in reader.opens):
        return [_concat_rows(reader, axis)]
    return reader.follow(all(each is not None and each.zero for each in reader.opens))


def _concat_rows(reader: Reader, axis: int) -> Open:
    """Join rows; what follows rows of open length is gathered from behind their bound to behind their length."""
    build, graph, names = reader.build, reader.graph, list(reader.input)
    first, extent = next((place, each) for place, each in enumerate(reader.opens) if each is not None)
    fixed = sum(reader.shape(place)[axis] for place in range(first))
    length, bound = extent.length, extent.bound + fixed
    if fixed:
        length = graph.length(build, "plus", length, fixed)
    if first == len(names) - 1:
        reader.keep()
        return Open(axis, length, bound)
    rows = build.node("Concat", *names[: first + 1], axis=axis)
    for place in range(first + 1, len(names)):
        size, other = reader.shape(place)[axis], reader.opens[place]
        row = build.constant(np.arange(bound + size))
        behind = build.node("Add", row, build.node("Sub", build.integers(bound), length))
        index = build.node("Where", build.node("Less", row, length), row, behind)
        index = build.node("Min", index, build.integers(bound + size - 1))
        rows = build.node("Gather", build.node("Concat", rows, names[place], axis=axis), index, axis=axis)
        length = (
            graph.length(build, "plus", length, size) if other is None else graph.sum_of(build, length, other.length)
        )
        bound += size
    build.node("Identity", rows, result=reader.result)
    return Open(axis, length, bound)


def expand(reader: Reader) -> list[Open | None]:
    """Repeat a value along other axes, or a fixed value as often as a length says."""
    sizes, before = reader.held(1), reader.shape(0)
    rank = max(len(sizes), len(before))
    extent = reader.open(0)
    if extent is None:
        place, size = _one_open(reader, sizes)
        axis = rank - len(sizes) + place
        own = axis - rank + len(before)
        if own >= 0 and before[own] != 1:
            reader.refuse("its shape does not follow the length")
        return _repeat(reader, axis, size)
    places = [rank - len(sizes) + place for place, size in enumerate(sizes) if isinstance(size, Extent)]
    axis = extent.axis + rank - len(before)
    own = axis - rank + len(sizes)
    wanted = sizes[own] if own >= 0 else 1
    follows = isinstance(wanted, Extent) and wanted.length == extent.length and wanted.is_length
    if (places and places != [axis]) or not (follows or (not isinstance(wanted, Extent) and wanted == 1)):
        reader.refuse("its shape does not follow the length")
    reader.keep()
    return [extent.along(axis)]


def tile(reader: Reader) -> list[Open | None]:
    """Repeat along other axes, or a fixed value as often as a length says."""
    extent, repeats = reader.open(0), reader.held(1)
    if extent is None:
        axis, times = _one_open(reader, repeats)
        return _repeat(reader, axis, times, reader.shape(0)[axis])
    if is_open(repeats) or repeats[extent.axis] != 1:
        reader.refuse("it repeats rows behind their length")
    return reader.follow(extent.zero)


def constant_of_shape(reader: Reader) -> list[Open | None]:
    """Fill a shape of which a length is one size."""
    return _repeat(reader, *_one_open(reader, reader.held(0)))


def _one_open(reader: Reader, sizes: Sizes) -> tuple[int, Extent]:
    """Return the place and extent of the one length among sizes."""
    opens = [(place, size) for place, size in enumerate(sizes) if isinstance(size, Extent)]
    if len(opens) != 1 or opens[0][1].scale < 1:
        reader.refuse("two of its axes are of open length")
    return opens[0]


def _repeat(reader: Reader, axis: int, times: Extent, rows: int = 1) -> list[Open | None]:
    """Keep a node that repeats `rows` along an axis as often as a length says."""
    length = reader.graph.length_of(reader.build, times)
    if rows > 1:
        length = reader.graph.length(reader.build, "times", length, rows)
    reader.keep()
    return [Open(axis, length, times.largest * rows)]


def span(reader: Reader) -> list[Open | None]:
    """Count from 0 to a length."""
    start, end, step = (reader.held(place).item() for place in range(3))
    if not isinstance(end, Extent) or end.scale < 1 or (start, step) != (0, 1):
        reader.refuse("only a count from 0 by 1 may have an open end")
    return _repeat(reader, 0, end)


def pad(reader: Reader) -> list[Open | None]:
    """Pad along other axes, or rows by a number of others, or up to a fixed number of rows."""
    extent, rank = reader.open(0), len(reader.shape(0))
    if extent is None:
        reader.refuse("the data decide how far it is padded")
    given: Sizes = reader.held(1)
    axes = [int(each) % rank for each in reader.held(3)] if reader.has(3) else list(range(rank))
    pads = np.zeros(2 * rank, dtype=object)
    pads[[*axes, *(axis + rank for axis in axes)]] = given
    opens = [place for place, size in enumerate(pads) if isinstance(size, Extent)]
    begin, end = pads[extent.axis], pads[extent.axis + rank]
    if not opens and (begin, end) == (0, 0):
        return reader.follow(extent.zero and not reader.has(2))
    if reader.get("mode", "constant") != "constant":
        reader.refuse("only constants may pad it along the axis of the length")
    fill = 0.0
    if reader.has(2):
        constant = reader.graph.constant(reader.input[2])
        if constant is None or constant.size != 1:
            reader.refuse("the data decide what pads it")
        fill = constant.item()
    data = reader.masked(0, fill)
    if not opens and min(begin, end) >= 0:
        reader.keep(_0=data)
        length = reader.graph.length(reader.build, "plus", extent.length, begin + end)
        return [Open(extent.axis, length, extent.bound + begin + end)]
    total = Extent(extent.length, extent.bound) + end
    if opens != [extent.axis + rank] or begin != 0 or isinstance(total, Extent) or total < 1:
        reader.refuse("it does not pad up to a fixed number of rows")
    if total < extent.bound:
        axis = extent.axis
        data = reader.build.node("Slice", data, *(reader.build.integers(each) for each in (0, total, axis)))
    widths = [int(each) if not isinstance(each, Extent) else max(0, total - extent.bound) for each in pads]
    copied = reader.build.copy(reader.proto)
    copied.input[0], copied.input[1] = data, reader.build.integers(*widths)
    del copied.input[3:]
    return [None]
