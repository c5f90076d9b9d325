"""Evaluate several cases at once, each on a thread of its own.

A product that is divided among threads waits for all of them, spinning, at every few lines of windows: during the
compilation of the kernels, which leaves no core to them, that takes five times as long.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from threadpoolctl import threadpool_limits

Tensors = dict[str, np.ndarray]

#: cases at once, at most: each holds its intermediate results
_AT_ONCE = 2


def evaluate_cases(evaluate: Callable[[Tensors], Tensors], inputs: Sequence[Tensors]) -> list[Tensors]:
    """Evaluate each of the inputs, in order, with products of one thread; exceptions propagate."""
    with threadpool_limits(1, "blas"), ThreadPoolExecutor(min(_AT_ONCE, os.cpu_count() or 1)) as threads:
        return list(threads.map(evaluate, inputs))
