"""Match rows of outputs that two evaluations sort otherwise, as scores within rounding of each other have no order.

    scores  0.9 0.7 0.7 0.1     boxes of the reference  A B C D     of the library  A C B D: two rows of four

Outputs with as many rows are one table, as a detector's boxes, scores and classes are: a row moves in all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..memory.footprint import ReorderedRows

#: most elements of the distances between rows
_MOST = 1 << 24
Tensors = Mapping[str, np.ndarray]


def match_rows(
    results: Sequence[Tensors], expected: Sequence[Tensors], scales: Mapping[str, float], tolerance: float
) -> ReorderedRows | None:
    """Return the rows that are elsewhere, over all cases; None if outputs differ by more than the order of rows.

    `scales` are the ranges of float outputs; those of others have to be equal. A row is the same within `tolerance` of them.
    """
    rows, total, worst = 0, 0, 0.0
    for result, wanted in zip(results, expected, strict=True):
        tables: dict[int, list[str]] = {}
        for name, value in wanted.items():
            tables.setdefault(_count(value), []).append(name)
        for count, names in tables.items():
            ours, theirs = (
                np.concatenate([_table(each[name], count, scales.get(name)) for name in names], axis=1)
                for each in (result, wanted)
            )
            apart = _distances(ours, theirs)
            (moved,) = np.nonzero(apart > tolerance)
            found = _match(ours[moved], theirs[moved], tolerance)
            if found is None:
                return None
            apart[moved] = found
            rows, total, worst = (
                rows + len(moved),
                total + (count if len(moved) else 0),
                max(worst, apart.max(initial=0.0)),
            )
    return ReorderedRows(rows, total, float(worst)) if rows else None


def _count(value: np.ndarray) -> int:
    """Return the number of rows: of the first axis that is not 1."""
    return next((extent for extent in value.shape if extent != 1), 1)


def _table(value: np.ndarray, count: int, scale: float | None) -> np.ndarray:
    """Return an output as rows of numbers by its scale; without one, of numbers that are equal or far apart."""
    rows = value.reshape(count, -1).astype(np.float64)
    return rows / scale if scale is not None else rows * 2.0


def _distances(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return the largest difference of each row; equal infinities and NaN do not differ."""
    same = (one == other) | (np.isnan(one) & np.isnan(other))
    with np.errstate(invalid="ignore"):
        apart = np.where(same, 0.0, np.abs(one - other))
    return np.where(np.isnan(apart), np.inf, apart).max(axis=-1, initial=0.0)


def _match(ours: np.ndarray, theirs: np.ndarray, tolerance: float) -> np.ndarray | None:
    """Return the distance of each row from another's, each taken once; None if a row has none within `tolerance`."""
    if ours.size * len(ours) > _MOST:
        return None
    free, found = np.ones(len(ours), bool), np.zeros(len(ours))
    for number, row in enumerate(ours):
        distances = np.where(free, _distances(row[None], theirs), np.inf)
        nearest = int(distances.argmin())
        if distances[nearest] > tolerance:
            return None
        free[nearest], found[number] = False, distances[nearest]
    return found
