"""Compare the times that the model of cycles predicts with measured ones."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from models import geometric_mean, spearman

#: cycles predicted, and milliseconds measured
Pair = tuple[float, float]


def rate_of(pairs: Mapping[str, Pair]) -> float:
    """Return the cycles a ns by which predictions are best, as factors; 1 without any."""
    return geometric_mean([cycles / (measured * 1e6) for cycles, measured in pairs.values()]) if pairs else 1.0


def fit_of(pairs: Mapping[str, Pair]) -> str:
    """Say how well predictions rank, and how many are off by more than a factor of two."""
    if len(pairs) < 2:
        return ""
    cycles, measured = np.array(list(pairs.values())).T
    off = np.abs(np.log(measured / (cycles / rate_of(pairs) / 1e6)))
    worst = list(pairs)[int(np.argmax(off))]
    rho = spearman(list(pairs.values()))
    return (
        f"Predicted and measured time: Spearman {rho:.3f}; off by more than 2 ×: {np.sum(off > np.log(2))} of {len(pairs)}; "
        f"most: {worst}, by {np.exp(off.max()):.1f}."
    )
