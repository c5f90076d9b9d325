"""Say how operators that read or write by index work on values of open length.

Indices behind their length are in range: they read the first element, or write a row behind the others, which is cut off:

    ScatterND(data, v, updates) ──► Slice(ScatterND(Concat(data, 0), rows behind the length: v, updates), all but the last row)
"""

from __future__ import annotations

import numpy as np

from .open_graph import Open, Reader


def gather(reader: Reader) -> list[Open | None]:
    """Take slices by indices in open number, or columns of rows in open number."""
    data, places = reader.open(0), reader.open(1)
    axis = int(reader.get("axis", 0)) % len(reader.shape(0))
    if places is None:
        assert data is not None
        if data.axis == axis:
            reader.refuse("it takes rows by their number, and there may be fewer")
        return reader.follow(data.zero)
    if data is not None and data.axis != axis:
        reader.refuse("its operands are open along axes that differ")
    reader.keep(_1=_indices(reader, data))
    return [places.along(axis + places.axis)]


def gather_elements(reader: Reader) -> list[Open | None]:
    """Take elements along an axis, by indices in open number along it or another."""
    data, places = reader.open(0), reader.open(1)
    axis = int(reader.get("axis", 0)) % len(reader.shape(0))
    if places is None:
        reader.refuse("its indices are fixed")
    if data is not None and data.axis != axis and (data.axis, data.length) != (places.axis, places.length):
        reader.refuse("its operands are open along axes that differ")
    _refuse_more_than_there_are(reader, places, axis)
    reader.keep(_1=_indices(reader, data if data is not None and data.axis == axis else None))
    return [places.along(places.axis)]


def gather_nd(reader: Reader) -> list[Open | None]:
    """Take elements or slices by indices in open number, or fixed ones of slices of open length."""
    data, places = reader.open(0), reader.open(1)
    rank, depth = len(reader.shape(1)), reader.shape(1)[-1]
    if reader.get("batch_dims", 0) or (places is not None and places.axis == rank - 1):
        reader.refuse("its indices are open along an index, or by batch")
    if places is None:
        if data is None or data.axis < depth:
            reader.refuse("it takes rows by their number, and there may be fewer")
        return reader.follow()
    if data is not None and data.axis >= depth:
        reader.refuse("two of its axes are of open length")
    reader.keep(_1=_indices(reader, data, _unit(depth, 0 if data is None else data.axis)))
    return [places.along(places.axis)]


def scatter(reader: Reader) -> list[Open | None]:
    """Write elements or slices in open number; a row that is cut off takes the rest."""
    data, places, updates = (reader.open(place) for place in range(3))
    shape, by_row = reader.shape(0), reader.op_type == "ScatterND"
    axis = 0 if by_row else int(reader.get("axis", 0)) % len(shape)
    if places is None or updates is None or (places.axis, places.length) != (updates.axis, updates.length):
        reader.refuse("its indices and updates have not the same open length")
    if by_row and places.axis == len(reader.shape(1)) - 1:
        reader.refuse("its indices are open along an index, or by batch")
    if data is not None and data.axis != axis:
        if by_row or (data.axis, data.length) != (places.axis, places.length):
            reader.refuse("its operands are open along axes that differ")
        reader.keep(_1=_indices(reader, None))
        return [data.along(data.axis)]
    if not by_row:
        _refuse_more_than_there_are(reader, places, axis)
    build, size = reader.build, shape[axis]
    unit = _unit(reader.shape(1)[-1], 0) if by_row else np.ones(())
    length = build.integers(size) if data is None else data.length
    index = reader.masked(1, unit * size, _from_front(reader, reader.input[1], length, unit))
    row = build.constant(np.zeros([*shape[:axis], 1, *shape[axis + 1 :]], reader.dtype(0)))
    written = reader.keep(_0=build.node("Concat", reader.input[0], row, axis=axis), _1=index)
    result, written.output[0] = written.output[0], build.names.new(f"{build.stem}/written")
    build.node("Slice", written.output[0], *(build.integers(each) for each in (0, size, axis)), result=result)
    return [None if data is None else data.along(axis)]


def _refuse_more_than_there_are(reader: Reader, places: Open, axis: int) -> None:
    """Refuse indices in open number along another axis than theirs, of which there may be more than elements."""
    if places.axis != axis and places.bound > reader.shape(0)[places.axis]:
        reader.refuse(f"there may be more indices than '{reader.input[0]}' has rows")


def _unit(depth: int, coordinate: int) -> np.ndarray:
    return np.arange(depth) == coordinate


def _indices(reader: Reader, data: Open | None, unit: np.ndarray = np.ones(())) -> str:
    """Build indices in range behind their length, which count from the length of the data where they are negative.

    `unit` is 1 for the coordinate along which `data` is open.
    """
    places, name = reader.open(1), reader.input[1]
    assert places is not None
    if places.zero:
        return name
    name = reader.masked(1, 0)
    return name if data is None else _from_front(reader, name, data.length, unit)


def _from_front(reader: Reader, name: str, length: str, unit: np.ndarray) -> str:
    """Build indices that count from the front."""
    build, dtype = reader.build, reader.dtype(1)
    if dtype != np.int64:
        length = build.cast(length, np.int32)
    negative = build.node("Less", name, build.constant(np.zeros((), dtype)))
    moved = build.node("Add", name, build.node("Mul", length, build.constant(unit.astype(dtype))))
    return build.node("Where", negative, moved, name)
