"""Operators that move, choose and arrange elements."""

from __future__ import annotations

import math

import numpy as np

from ..draw import DTYPES, Draw


def reshape(draw: Draw) -> None:
    shape = draw.dims(1, 4)
    draw.data(shape)
    count = math.prod(shape)
    wanted = [d for d in range(1, count + 1) if count % d == 0]
    first = draw.choice(wanted)
    goal = draw.choice(([first, count // first], [-1, first], [first, 1, -1], [count], [0, -1]))
    draw.tell(goal)
    draw.attribute("allowzero", 0)


def transpose(draw: Draw) -> None:
    shape = draw.dims(0, 5)
    draw.data(shape)
    draw.attribute("perm", [int(axis) for axis in draw.random.permutation(len(shape))] or None)


def expand(draw: Draw) -> None:
    shape = draw.dims(0, 4)
    draw.data(draw.broadcast(shape))
    draw.tell(shape if shape else [1])


def tile(draw: Draw) -> None:
    shape = draw.dims(1, 4)
    draw.data(shape)
    draw.tell([draw.integer(1, 3) for _ in shape])


def squeeze(draw: Draw) -> None:
    shape = [1 if draw.chance() else draw.integer(1, 4) for _ in range(draw.integer(1, 5))]
    draw.data(shape)
    ones = [
        axis - (len(shape) if draw.chance(0.3) and draw.version >= 11 else 0)
        for axis, size in enumerate(shape)
        if size == 1
    ]
    chosen = [axis for axis in ones if draw.chance(0.7)]
    if chosen:
        draw.tell(chosen) if draw.takes(1) else draw.attribute("axes", chosen, 1)


def unsqueeze(draw: Draw) -> None:
    shape = draw.dims(0, 3)
    draw.data(shape)
    rank = len(shape) + draw.integer(1, 2)
    axes = [int(axis) for axis in draw.random.permutation(rank)[: rank - len(shape)]]
    axes = [axis - (rank if draw.chance(0.3) and draw.version >= 11 else 0) for axis in axes]
    draw.tell(axes) if draw.takes(1) else draw.attribute("axes", axes, 1)


def concat(draw: Draw) -> None:
    shape = list(draw.dims(1, 4))
    axis = draw.axis(len(shape)) if draw.version >= 11 else draw.integer(0, len(shape) - 1)
    for _ in range(draw.integer(1, 4)):
        shape[axis] = draw.integer(1, 4)
        draw.data(shape)
    draw.attributes["axis"] = axis


def split(draw: Draw) -> None:
    shape = list(draw.dims(1, 4))
    axis = draw.axis(len(shape)) if draw.version >= 11 else draw.integer(0, len(shape) - 1)
    sizes = [draw.integer(1, 3) for _ in range(draw.integer(1, 3))]
    if draw.chance(0.4):
        sizes = [sizes[0]] * len(sizes)
        explicit = False
    else:
        explicit = True
    shape[axis] = sum(sizes)
    draw.data(shape)
    draw.attribute("axis", axis, 1)
    if explicit:
        draw.tell(sizes) if draw.takes(1) else draw.attribute("split", sizes, 1)
    else:
        draw.attribute("num_outputs", len(sizes), 1)
    draw.results = len(sizes)


def slices(draw: Draw) -> None:
    shape = draw.dims(1, 4, 7)
    draw.data(shape)
    axes = draw.axes(len(shape))
    starts = [draw.integer(-shape[axis] - 1, shape[axis] - 1) for axis in axes]
    ends = [draw.choice((draw.integer(-shape[axis], shape[axis] + 1), 2**31 - 1)) for axis in axes]
    if not draw.takes(1):
        draw.attribute("axes", [axis % len(shape) for axis in axes], 1)
        draw.attribute("starts", starts, 1)
        draw.attribute("ends", ends, 1)
        return
    steps = [draw.choice((1, 1, 2, 3, -1, -2)) for _ in axes]
    for number, step in enumerate(steps):
        if step < 0:
            starts[number], ends[number] = ends[number], draw.choice((starts[number], -(2**31) + 1))
    dtype = draw.choice(("int32", "int64"))
    for each in (starts, ends, axes, steps):
        draw.tell(each, dtype)


def pad(draw: Draw) -> None:
    shape = draw.dims(1, 4)
    draw.data(shape)
    mode = draw.choice(("constant", "constant", "edge", "reflect", *(["wrap"] if draw.version >= 19 else [])))
    low = -1 if mode == "constant" and draw.chance(0.3) else 0
    pads = [draw.integer(low, 2 if mode == "constant" else min(2, size - 1)) for size in (*shape, *shape)]
    draw.attributes["mode"] = mode
    if draw.has("pads"):
        draw.attributes["pads"] = pads
        draw.attribute("value", 1.5)
        return
    axes = draw.axes(len(shape)) if draw.takes(3) and draw.chance(0.4) else None
    draw.tell(
        pads if axes is None else [pads[axis % len(shape) + half * len(shape)] for half in (0, 1) for axis in axes]
    )
    if draw.chance() or axes is not None:
        draw.give(draw.values((), draw.dtype(), 0, 5), told=draw.chance())
    if axes is not None:
        draw.tell(axes)


def gather(draw: Draw) -> None:
    shape = draw.dims(1, 4)
    axis = draw.axis(len(shape)) if draw.version >= 11 else draw.integer(0, len(shape) - 1)
    draw.data(shape)
    size = shape[axis]
    low = -size if draw.version >= 11 else 0
    goal = draw.dims(0, 2) if draw.schema.name == "Gather" else tuple(draw.integer(1, n) for n in shape)
    draw.data(goal, 1, low, size - 1)
    draw.attribute("axis", axis, 0.8 if axis == 0 else 1)


def gather_nd(draw: Draw) -> None:
    shape = draw.dims(1, 4)
    batch = draw.integer(0, len(shape) - 1) if draw.has("batch_dims") and draw.chance() else 0
    depth = draw.integer(1, len(shape) - batch)
    draw.data(shape)
    lead = (*shape[:batch], *draw.dims(0 if batch else 1, 2, 3))
    draw.give(_tuples(draw, lead, shape[batch : batch + depth]))
    draw.attribute("batch_dims", batch, 1)


def _tuples(draw: Draw, lead: tuple[int, ...], sizes: tuple[int, ...]) -> np.ndarray:
    return np.stack([draw.random.integers(-n, n, lead) for n in sizes], -1).astype(np.int64)


def scatter(draw: Draw) -> None:
    shape = draw.dims(1, 4)
    axis = draw.axis(len(shape)) if draw.version >= 11 else draw.integer(0, len(shape) - 1)
    draw.data(shape)
    small = tuple(draw.integer(1, size) for size in shape)
    reduction = draw.choice(("none", "add", "mul", "max", "min")) if draw.has("reduction") else "none"
    size = shape[axis]
    lines = np.argsort(draw.random.random((*small[: axis % len(shape)], size, *small[axis % len(shape) + 1 :])), axis)
    rows = np.take(lines, range(small[axis]), axis)  # once each: the order of equal indices is undefined
    draw.give((rows - (size if draw.chance(0.3) and draw.version >= 11 else 0)).astype(draw.dtype(1)))
    draw.data(small, 2)
    draw.attributes["axis"] = axis
    draw.attribute("reduction", reduction if reduction in ("none", "add", "mul") or draw.version >= 18 else "add")


def scatter_nd(draw: Draw) -> None:
    shape = draw.dims(1, 4)
    depth = draw.integer(1, len(shape))
    draw.data(shape)
    places = math.prod(shape[:depth])
    count = draw.integer(1, places)
    flat = draw.random.permutation(places)[:count]
    draw.give(np.stack(np.unravel_index(flat, shape[:depth]), -1).astype(np.int64))
    draw.data((count, *shape[depth:]), 2)
    if draw.has("reduction"):
        draw.attribute(
            "reduction", draw.choice(("none", "add", "mul", *(["max", "min"] if draw.version >= 18 else [])))
        )


def blocks(draw: Draw) -> None:
    size, (n, c, h, w) = draw.integer(1, 3), (draw.integer(1, 2) for _ in range(4))
    name = draw.schema.name
    draw.data((n, c * size * size, h, w) if name == "DepthToSpace" else (n, c, h * size, w * size))
    draw.attributes["blocksize"] = size
    draw.attribute("mode", draw.choice(("DCR", "CRD")))


def one_hot(draw: Draw) -> None:
    depth = draw.integer(2, 5)
    shape = draw.dims(0, 3)
    indices = draw.values(shape, draw.dtype(), 0 if draw.dtype().kind == "u" else -depth, depth - 1)
    draw.give(np.round(indices.astype(np.float64)).astype(indices.dtype))
    draw.give(np.asarray(depth, draw.dtype(1)), told=True)
    draw.give(draw.values((2,), draw.dtype(2)))
    draw.attribute("axis", draw.integer(-len(shape) - 1, len(shape)))


def trilu(draw: Draw) -> None:
    draw.data(draw.dims(2, 4))
    if draw.chance():
        draw.tell(draw.integer(-3, 3))
    draw.attribute("upper", draw.integer(0, 1))


def reverse_sequence(draw: Draw) -> None:
    shape = draw.dims(2, 4)
    batch = draw.integer(0, 1)
    draw.data(shape)
    draw.give(draw.random.integers(1, shape[1 - batch] + 1, shape[batch]).astype(np.int64))
    if batch != 1 or draw.chance():
        draw.attributes |= {"batch_axis": batch, "time_axis": 1 - batch}


def flatten(draw: Draw) -> None:
    shape = draw.dims(1, 4)
    draw.data(shape)
    draw.attribute("axis", draw.integer(-len(shape) if draw.version >= 11 else 0, len(shape)))


def shape_of(draw: Draw) -> None:
    draw.data(draw.dims(0, 4))
    draw.attribute("start", draw.integer(-4, 4))
    draw.attribute("end", draw.integer(-4, 4))


def crop_pad(draw: Draw) -> None:
    shape = draw.dims(1, 4)
    draw.data(shape)
    axes = draw.axes(len(shape))
    draw.tell([draw.integer(1, 6) for _ in axes])
    draw.attributes["axes"] = axes


def eye_like(draw: Draw) -> None:
    draw.data(draw.dims(2, 2))
    draw.attribute("k", draw.integer(-2, 2))


def compress(draw: Draw) -> None:
    shape = draw.dims(1, 3)
    axis = draw.axis(len(shape)) if draw.version >= 11 else draw.integer(0, len(shape) - 1)
    whole = not draw.attribute("axis", axis)
    draw.data(shape)
    draw.give(draw.values((math.prod(shape) if whole else shape[axis],), DTYPES["bool"]), told=True)


def told(draw: Draw) -> None:
    if draw.schema.name == "Range":
        for value in (draw.integer(-5, 5), draw.integer(6, 20), draw.integer(1, 4)):
            draw.give(np.asarray(value, draw.dtype(0, ("float", "double", "int16", "int32", "int64"))), told=True)
    else:
        draw.tell(draw.dims(1, 3))


TABLE = {
    "Reshape": reshape, "Transpose": transpose, "Expand": expand, "Tile": tile, "Squeeze": squeeze, "Unsqueeze": unsqueeze,
    "Concat": concat, "Split": split, "Slice": slices, "Pad": pad, "Gather": gather, "GatherElements": gather, "GatherND": gather_nd,
    "ScatterElements": scatter, "Scatter": scatter, "ScatterND": scatter_nd, "DepthToSpace": blocks, "SpaceToDepth": blocks,
    "OneHot": one_hot, "Trilu": trilu, "ReverseSequence": reverse_sequence, "Flatten": flatten, "Shape": shape_of, "Size": shape_of,
    "CenterCropPad": crop_pad, "EyeLike": eye_like, "Compress": compress, "Range": told, "ConstantOfShape": told,
}  # fmt: skip
