"""Write rows of open length into others: rows behind the length are written to one more row, which is then cut off.

x[mask] = v is a ScatterND by NonZero's places; torchvision puts the regions of each level of a pyramid back by ScatterElements.
"""

from __future__ import annotations

import numpy as np

from .open_graph import Open, Reader


def scatter_elements(reader: Reader) -> list[Open | None]:
    """Write elements along the axis that is open, or not, in what they are written to."""
    data, axis = reader.open(0), int(reader.attributes.get("axis", 0)) % len(reader.shape(0))
    places = _written(reader, axis)
    if data is not None and data.axis != axis:
        reader.refuse("it is open along an axis along which nothing is written")
    size, build, dtype = reader.shape(0)[axis], reader.build, reader.dtype(1)
    name = reader.node.input[1]
    if not places.zero:
        length = data.length if data is not None else build.integers(size)
        name = _from_front(reader, build.node("Cast", length, to=_element(dtype)))
    _write(reader, axis, reader.masked(1, size, name))
    return [data]


def scatter_nd(reader: Reader) -> list[Open | None]:
    """Write elements or slices at places, one a row."""
    data, shape, depth = reader.open(0), reader.shape(0), reader.shape(1)[-1]
    places = _written(reader, 0)
    if len(reader.shape(1)) != 2 or (data is not None and (data.axis >= depth or (depth > 1 and not places.zero))):
        reader.refuse("its places are no rows, or may count from the end of an open axis")
    name = reader.node.input[1]
    if not places.zero:
        name = _from_front(reader, reader.build.integers(*shape[:depth]) if data is None else data.length)
    behind = np.zeros(depth, np.int64)
    behind[0] = shape[0]
    _write(reader, 0, reader.masked(1, behind, name))
    return [data]


def _written(reader: Reader, axis: int) -> Open:
    """Return the extent of the places, which is that of the updates, along `axis`."""
    places, updates = reader.open(1), reader.open(2)
    if (
        places is None
        or updates is None
        or places.length != updates.length
        or (places.axis, updates.axis) != (axis, axis)
    ):
        reader.refuse("its places and updates are not open along the axis that is written")
    return places


def _from_front(reader: Reader, sizes: str) -> str:
    """Build places that count from the front, of ones that may count from the end of axes of `sizes`."""
    build, name = reader.build, reader.node.input[1]
    negative = build.node("Less", name, build.constant(np.zeros((), reader.dtype(1))))
    return build.node("Where", negative, build.node("Add", name, sizes), name)


def _write(reader: Reader, axis: int, places: str) -> None:
    """Build the node on one more row, at `places`, and cut that row off."""
    build, shape = reader.build, list(reader.shape(0))
    size, shape[axis] = shape[axis], 1
    more = build.node("Concat", reader.node.input[0], build.constant(np.zeros(shape, reader.dtype(0))), axis=axis)
    written = reader.keep(_0=more, _1=places)
    written.output[0] = build.names.new(f"{build.stem}/written")
    ends = (build.integers(each) for each in (0, size, axis))
    build.node("Slice", written.output[0], *ends, result=reader.node.output[0])


def _element(dtype: np.dtype) -> int:
    from onnx import helper

    return helper.np_dtype_to_tensor_dtype(dtype)
