"""Defer the values of weights until one is read: planning asks for their shapes alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np


class DeferredWeights(Sequence[np.ndarray]):
    """Hold the number of weights; make all of them when one is read."""

    def __init__(self, make: Callable[[], Sequence[np.ndarray]], count: int):
        self._make, self._count = make, count
        self._made: Sequence[np.ndarray] | None = None

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, number):
        if self._made is None:
            self._made = self._make()
        return self._made[number]
