"""Build the results of operators that choose, up to a bound, with operators of static results."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .choose import Chosen, at_places
from .extent import Extent
from .open_graph import OpenGraph, Reader
from .readers import filling
from .suppress import Detections, suppress
from .unique import unique

#: returns the bound of a node whose result has at most so many rows
BoundOf = Callable[[Reader, int], int]


def _non_zero(reader: Reader, bound_of: BoundOf) -> list[Chosen]:
    """Build the choice; or, of flags that are repeated along axes behind theirs, the elements of the rows that these choose."""
    shape, name, build = reader.shape(0), reader.input[0], reader.build
    if not shape:
        reader.refuse("a scalar has no axes")
    data = name if reader.open(0) is None else reader.masked(0, 0)
    size = int(np.prod(shape))
    bound = bound_of(reader, size)
    flags = _repeated(reader.graph, name)
    if flags and bound == size and reader.open(0) is None:
        count = int(np.prod(reader.graph.shape(flags) or (1,)))
        places, length = reader.graph.choose(build, flags, count, count, lambda: _flat(reader, flags))
        width = size // count
        first = build.node("Unsqueeze", build.node("Mul", places, build.integers(width)), build.integers(1))
        every = build.node("Reshape", build.node("Add", first, build.integers(*range(width))), build.integers(-1))
        return [at_places(build, every, reader.graph.length(build, "times", length, width), shape, bound, zero=False)]
    chosen = reader.graph.choose(build, name, size, bound, lambda: _flat(reader, data))
    return [at_places(build, *chosen, shape, bound)]


def _flat(reader: Reader, data: str) -> str:
    """Build the flags of elements that are not 0, in a row."""
    build, dtype = reader.build, reader.dtype(0)
    if dtype.kind != "b":
        data = build.node("Not", build.node("Equal", data, build.constant(np.zeros((), dtype))))
    return build.node("Reshape", data, build.integers(-1))


def _repeated(graph: OpenGraph, name: str) -> str:
    """Return the flags that are repeated along axes behind theirs; "" for others: x[mask] = v repeats its mask."""
    wide = graph.shape(name) or ()
    for operator in ("Expand", "Unsqueeze"):
        node = graph.producers.get(name)
        if node is None or node.op_type != operator:
            return ""
        column, name = graph.shape(name) or (), node.input[0]
    shape = graph.shape(name) or ()
    behind = column == shape + (1,) * (len(wide) - len(shape)) and wide[: len(shape)] == shape
    return name if shape and behind and graph.dtype(name).kind == "b" else ""


def _compress(reader: Reader, bound_of: BoundOf) -> list[Chosen]:
    """Build the choice; or, of flags that are constant, the slices, whose number is known."""
    shape, flags, count = reader.shape(0), reader.input[1], reader.shape(1)[0]
    axis = int(reader.attributes["axis"]) % len(shape) if "axis" in reader.attributes else None
    extent = int(np.prod(shape)) if axis is None else shape[axis]
    data, told = reader.open(0), reader.graph.constant(flags)
    if told is not None and data is None:
        rows = reader.input[0]
        if axis is None:
            rows = reader.build.node("Reshape", rows, reader.build.integers(-1))
        places = reader.build.integers(*np.flatnonzero(told[:extent]).tolist())
        reader.build.node("Gather", rows, places, result=reader.result, axis=axis or 0)
        return []
    if data is not None and (axis != data.axis or reader.open(1) is None):
        reader.refuse("its flags are not those of the rows")
    _ = reader.open(1) is not None and reader.only
    read, build = min(count, extent), reader.build
    bound = bound_of(reader, read)

    def built() -> str:
        given = flags if reader.open(1) is None else reader.masked(1, False)
        if count > extent:
            given = build.node("Slice", given, build.integers(0), build.integers(extent), build.integers(0))
        return given

    places, length = reader.graph.choose(build, flags, read, bound, built)
    rows = reader.input[0] if axis is not None else build.node("Reshape", reader.input[0], build.integers(-1))
    kept = build.node("Gather", rows, places, axis=axis or 0)
    sizes = (bound,) if axis is None else (*shape[:axis], bound, *shape[axis + 1 :])
    return [Chosen(kept, axis or 0, length, sizes, reader.dtype(0), zero=False)]


def _suppress(reader: Reader, bound_of: BoundOf) -> list[Chosen]:
    (batches, count, _), (_, classes, _) = reader.shape(0), reader.shape(1)
    build, names = reader.build, reader.input
    length = ""
    if any(reader.opens):
        boxes, scores = reader.open(0), reader.open(1)
        if boxes is None or scores is None or (boxes.axis, scores.axis) != (1, 2):
            reader.refuse("boxes and scores are not open along the boxes")
        length = reader.only.length

    def scalar(place: int) -> str:
        return build.node("Reshape", names[place], build.integers()) if reader.has(place) else ""

    most, value = 0, ""
    if reader.has(2):
        sizes = reader.graph.sizes_of(names[2])
        limit = None if sizes is None else sizes.flat[0]
        most = count if limit is None else limit.largest if isinstance(limit, Extent) else int(limit)
        if limit is None or isinstance(limit, Extent):
            value = scalar(2)
    most = min(most, count)
    bound = bound_of(reader, most * batches * classes)
    overlap = scalar(3) or build.constant(np.zeros((), np.float32))
    centered = bool(reader.get("center_point_box", 0))
    given = Detections(names[0], names[1], batches, classes, count, centered, overlap, scalar(4), most, value, length)
    return [suppress(build, given, bound)]


def _unique(reader: Reader, bound_of: BoundOf) -> list[Chosen]:
    shape, build, extent = reader.shape(0), reader.build, reader.open(0)
    if len(shape) != 1 and ("axis" in reader.attributes or extent is not None):
        reader.refuse("only whole tensors and vectors have unique elements that compile")
    count = int(np.prod(shape, dtype=np.int64))
    bound = bound_of(reader, count)
    data = build.node("Reshape", reader.input[0], build.integers(-1))
    if extent is not None:
        data = reader.masked(0, filling("highest", reader.dtype(0)))
    ordered = bool(reader.get("sorted", 1))
    return unique(build, data, count, reader.dtype(0), bound, ordered, "" if extent is None else extent.length)


def _top(reader: Reader, bound_of: BoundOf) -> list[Chosen]:
    """Build the largest along an axis, as many as an input says: no more than there are."""
    if any(reader.opens):
        reader.refuse("the data decide how many it selects")
    shape, build = reader.shape(0), reader.build
    axis = int(reader.get("axis", -1)) % len(shape)
    bound = bound_of(reader, shape[axis])
    copied = build.copy(reader.proto)
    copied.input[1] = build.integers(bound)
    copied.output[:] = [build.names.new(f"{build.stem}/top_{place}") for place in range(2)]
    length = build.node("Min", build.node("Reshape", reader.input[1], build.integers(1)), build.integers(bound))
    length = build.node("Max", length, build.integers(0))
    sizes = (*shape[:axis], bound, *shape[axis + 1 :])
    kinds = reader.dtype(0), np.dtype(np.int64)
    return [Chosen(name, axis, length, sizes, kind, zero=False) for name, kind in zip(copied.output, kinds)]


CHOICES: dict[str, Callable[[Reader, BoundOf], list[Chosen]]] = {
    "Compress": _compress, "NonMaxSuppression": _suppress, "NonZero": _non_zero, "TopK": _top, "Unique": _unique,
}  # fmt: skip
