"""Find the largest workspace of kernels as TVM made them: it limits schedules."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable

from tvm.tirx import PrimFunc

from ...tir.workspace import held_bytes
from .candidates import is_scheduled


def largest_default(kernels: Iterable[tuple[PrimFunc, Callable[[], int]]]) -> int:
    """Find the largest default workspace of kernels, in bytes.

    Kernels come with a function that measures theirs. Measures few: stops at kernels whose buffers together are no larger
    than the best so far.
    """
    most = 0
    for bound, default in sorted(
        ((_at_most(kernel), default) for kernel, default in kernels), key=lambda each: -each[0]
    ):
        if bound <= most:
            break
        most = max(most, default())
    return most


def _at_most(kernel: PrimFunc) -> int:
    return sys.maxsize if is_scheduled(kernel) else held_bytes(kernel)
