"""Match rows of outputs that are in another order than the reference's, as scores within rounding of each other leave it open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ...memory.measured import ReorderedRows
from ..error_bounds import distances
from .choices import Choice

#: most elements of the distances between rows
_MOST_DISTANCES = 1 << 24


def match_rows(
    results: Sequence[Mapping[str, np.ndarray]],
    expected: Sequence[Mapping[str, np.ndarray]],
    scales: Mapping[str, float],
    tolerance: float,
    choices: Sequence[Mapping[str, Choice]] = (),
) -> ReorderedRows | None:
    """Return the rows that are elsewhere, over all cases; None if outputs differ by more than the order of rows.

    Scores within rounding of each other have no order: of 0.9 0.7 0.7, boxes A B C are A C B too. Outputs with as many rows are
    one table, as a detector's boxes, scores and classes are: a row moves in all of them.
    `scales` are the ranges of float outputs, and of the scores of `choices`; other outputs have to be equal. A row is the same within `tolerance` of them.
    Integers do not move where all floats are equal in place: no rounding was there to order rows otherwise.
    Indices stand for the scores that they choose, where the case's `choices` have these: a row of other indices is elsewhere.
    """
    rows, total, worst = 0, 0, 0.0
    for number, (result, wanted) in enumerate(zip(results, expected, strict=True)):
        chosen = choices[number] if choices else {}
        found, truth = ({**each} for each in (result, wanted))
        for name, choice in chosen.items():
            picks = choice.picked(result[name]), choice.picked(wanted[name])
            if picks[0] is None or picks[1] is None:
                return None
            found[name], truth[name] = picks
        tables: dict[int, list[str]] = {}
        for name, value in wanted.items():
            tables.setdefault(_row_count(value), []).append(name)
        for count, names in tables.items():
            ours, theirs = (
                np.concatenate([_rows_of(each[name], count, scales.get(name)) for name in names], axis=1)
                for each in (found, truth)
            )
            apart = distances(ours, theirs).max(axis=-1, initial=0.0)
            elsewhere = apart > tolerance
            (moved,) = np.nonzero(elsewhere)
            nearest = _match_each(ours[moved], theirs[moved], tolerance)
            floats = [name for name in names if name in scales]
            if nearest is None or (len(moved) and _equal_rows(result, wanted, floats, count, moved)):
                return None
            apart[moved] = nearest
            for name in chosen.keys() & set(names):
                elsewhere |= (result[name] != wanted[name]).reshape(count, -1).any(axis=1)
            if elsewhere.any():
                rows, total = rows + int(elsewhere.sum()), total + count
            worst = max(worst, apart.max(initial=0.0))
    return ReorderedRows(rows, total, float(worst)) if rows else None


def _equal_rows(
    one: Mapping[str, np.ndarray], other: Mapping[str, np.ndarray], names: Sequence[str], count: int, rows: np.ndarray
) -> bool:
    """Return whether outputs equal each other in some of their `count` rows."""
    pairs = ((each[name].reshape(count, -1)[rows] for each in (one, other)) for name in names)
    return all(np.array_equal(*pair, equal_nan=True) for pair in pairs)


def _row_count(value: np.ndarray) -> int:
    """Return the number of rows: of the first axis that is not 1."""
    return next((extent for extent in value.shape if extent != 1), 1)


def _rows_of(value: np.ndarray, count: int, scale: float | None) -> np.ndarray:
    """Return an output as rows of numbers by its scale; without one, of numbers that are equal or far apart."""
    rows = value.reshape(count, -1).astype(np.float64)
    return rows / scale if scale is not None else rows * 2.0


def _match_each(ours: np.ndarray, theirs: np.ndarray, tolerance: float) -> np.ndarray | None:
    """Return the distance of each row from another's, each taken once; None if a row has none within `tolerance`."""
    if ours.size * len(ours) > _MOST_DISTANCES:
        return None
    free, found = np.ones(len(ours), bool), np.zeros(len(ours))
    for number, row in enumerate(ours):
        apart = np.where(free, distances(row[None], theirs).max(axis=-1, initial=0.0), np.inf)
        nearest = int(apart.argmin())
        if apart[nearest] > tolerance:
            return None
        free[nearest], found[number] = False, apart[nearest]
    return found
