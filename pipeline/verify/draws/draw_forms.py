"""Draw values with a form: positions that differ, coordinates, boxes, masks."""

from __future__ import annotations

import math

import numpy as np

from .constraint import Form

#: what an additive mask adds to positions it hides: finite in float16
_HIDDEN = -1e4
#: most positions that are shuffled
_MOST = 1 << 22


def draw_form(
    generator: np.random.Generator, shape: tuple[int, ...], form: Form, low: float, high: float, case: int
) -> np.ndarray | None:
    """Draw values of a form within an interval; None if the shape has none of that form, or others will do."""
    if (not shape and form.kind != "exact") or 0 in shape:
        return None
    if form.kind == "distinct":
        return _distinct(generator, shape, form.axis, int(low), int(high))
    if form.kind == "unique":
        flat = _distinct(generator, (math.prod(shape),), 0, int(low), int(high))
        return None if flat is None else flat.reshape(shape)
    if form.kind in ("coordinates", "places"):
        return _coordinates(generator, shape, form, low < 0) if shape[-1] == len(form.sizes) else None
    if form.kind == "boxes":
        return _boxes(generator, shape, form.sizes[:2]) if shape[-1] == 4 else None
    if form.kind == "rois":
        return _rois(generator, shape, form.sizes) if shape[-1] == 5 else None
    if form.kind == "mask":
        return _open_first(generator.integers(0, 2, shape), 1)
    if form.kind == "hides":
        return _open_first(generator.integers(0, 2, shape), 0)
    if form.kind == "additive":
        return _open_first(_HIDDEN * generator.integers(0, 2, shape), 0) if case % 3 == 2 else None
    if form.kind == "sparse":
        return _sparse(generator, shape, form.sizes, (low, high), case)
    if form.kind == "exact":
        return np.resize(np.asarray(form.sizes), shape)
    return _open_first(np.ones(shape), -1) if form.kind == "shape" else None


def _open_first(values: np.ndarray, first: int) -> np.ndarray:
    """Set the first position of the last axis."""
    values[..., 0] = first
    return values


def _sparse(
    generator: np.random.Generator,
    shape: tuple[int, ...],
    sizes: tuple[float, ...],
    limits: tuple[float, float],
    case: int,
) -> np.ndarray | None:
    """Draw values of which half, none or one, by case in turn, differ from the first of `sizes`; None without room for these."""
    start, step = sizes
    rest = float(np.clip(start, *limits))
    chosen = np.zeros(math.prod(shape), bool)
    if case % 3 == 0:
        chosen[:] = generator.integers(0, 2, chosen.size)
    elif case % 3 == 2:
        chosen[generator.integers(0, chosen.size)] = True
    others = np.clip(start + step * (1 + 3 * generator.random(chosen.size)), *limits)
    return None if (others == rest).any() else np.where(chosen, others, rest).reshape(shape)


def _distinct(
    generator: np.random.Generator, shape: tuple[int, ...], axis: int, low: int, high: int
) -> np.ndarray | None:
    """Draw positions that differ along an axis; negative ones count from the end of it."""
    along = axis if -len(shape) <= axis < len(shape) else -1
    size, count = high + 1, shape[along]
    if count > size or low > 0:
        return None
    lines = math.prod(shape) // count
    if lines * size <= _MOST:
        positions = generator.permuted(np.tile(np.arange(size), (lines, 1)), axis=1)[:, :count]
    else:
        positions = (generator.integers(0, size, (lines, 1)) + np.arange(count)) % size
    if low < 0:
        positions -= size * generator.integers(0, 2, positions.shape)
    moved = [extent for number, extent in enumerate(shape) if number != along % len(shape)]
    return np.moveaxis(positions.reshape([*moved, count]), -1, along)


def _coordinates(generator: np.random.Generator, shape: tuple[int, ...], form: Form, negative: bool) -> np.ndarray:
    sizes = tuple(int(size) for size in form.sizes)
    rows, total = math.prod(shape[:-1]), math.prod(sizes)
    apart = form.kind == "places" and rows <= total
    flat = generator.choice(total, rows, replace=False) if apart else generator.integers(0, max(1, total), rows)
    places = np.stack(np.unravel_index(flat, sizes), axis=-1)
    if negative:
        places = places - np.asarray(sizes) * generator.integers(0, 2, places.shape)
    return places.reshape(shape)


def _boxes(generator: np.random.Generator, shape: tuple[int, ...], sizes: tuple[float, ...]) -> np.ndarray:
    """Draw boxes with an area: the second corner lies below and right of the first."""
    first = 0.7 * generator.random((*shape[:-1], 2))
    second = first + (1 - first) * (0.3 + 0.7 * generator.random((*shape[:-1], 2)))
    return np.concatenate([first, second], axis=-1) * np.asarray([*sizes, *sizes])


def _rois(generator: np.random.Generator, shape: tuple[int, ...], sizes: tuple[float, ...]) -> np.ndarray:
    rows = generator.integers(0, max(1, int(sizes[2])), (*shape[:-1], 1))
    return np.concatenate([rows, _boxes(generator, (*shape[:-1], 4), sizes[:2])], axis=-1)
