"""Predict the cost of a sequence from graph features, by regression over known models."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .record import ModelRecord, Specs

Features = tuple[float, ...]

#: L2 penalty of the ridge regression, on standardised features
REGULARISATION = 10.0

#: decimals kept of a prediction: the last bits of a least-squares solution depend on the machine
DIGITS = 6

#: deviation up to which a feature is constant, as a fraction of its largest value
_CONSTANT = 1e-12


@dataclass(frozen=True)
class Query:
    """Sequence on a graph: features before and after the graph passes, and the tail."""

    start: Features
    state: Features
    tail: Specs

    def row(self, specs: Sequence[str]) -> list[float]:
        """Return the features after the passes, their change, and flags of `specs` in the tail."""
        change = [after - before for after, before in zip(self.state, self.start, strict=True)]
        return [*self.state, *change, *(float(spec in self.tail) for spec in specs)]


class _Line(NamedTuple):
    """Linear function of features: `level` at their `mean`, and the `slopes` from there."""

    mean: np.ndarray
    slopes: np.ndarray
    level: float


class CostPredictor:
    """Ridge regression of log(cost ÷ cost of tvm-default), with equal weight per known model."""

    def __init__(self, records: Iterable[ModelRecord], objective: str):
        """Fit the regression; `records` must not be empty."""
        records = list(records)
        self._specs = sorted({spec for record in records for tail in record.tails for spec in tail})
        self._line = _fit(records, objective, self._specs)

    def predict(self, queries: Sequence[Query]) -> list[float]:
        """Predict one number per query; smaller is better."""
        if not queries:
            return []
        mean, slopes, level = self._line
        found = (np.array([query.row(self._specs) for query in queries]) - mean) @ slopes + level
        return [round(float(each), DIGITS) for each in found]


def _fit(records: Sequence[ModelRecord], objective: str, specs: Sequence[str]) -> _Line:
    """Fit by the normal equations: importing scikit-learn for them takes longer than many a search."""
    rows, costs, weights = [], [], []
    for record in records:
        examples = _examples(record, objective)
        rows += [query.row(specs) for query, _ in examples]
        costs += [math.log(cost) for _, cost in examples]
        weights += [1 / len(examples)] * len(examples)
    table, cost, weight = np.array(rows), np.array(costs), np.array(weights)
    deviation = table.std(axis=0)
    scale = np.where(deviation > _CONSTANT * np.abs(table).max(axis=0), deviation, 1.0)
    mean, level = np.average(table, axis=0, weights=weight), float(np.average(cost, weights=weight))
    moved = (table - mean) / scale
    weighed = moved.T * weight
    slopes = np.linalg.solve(weighed @ moved + REGULARISATION * np.eye(len(mean)), weighed @ (cost - level))
    return _Line(mean, slopes / scale, level)


def _examples(record: ModelRecord, objective: str) -> list[tuple[Query, float]]:
    start = record.states[0].features
    return [
        (Query(start, state.features, tail), record.outcomes[outcome].cost(objective))
        for state in record.states
        for tail, outcome in zip(record.tails, state.outcomes, strict=True)
        if outcome is not None
    ]
