"""Find the largest workspace of kernels as TVM made them: it limits schedules."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import TypeVar

from tvm.tirx import PrimFunc

from ...tir.workspace import held_bytes
from .candidates import is_scheduled

_Known = TypeVar("_Known")


def largest_default(kernels: Iterable[tuple[PrimFunc, _Known]], default: Callable[[_Known], int]) -> int:
    """Find the largest default workspace of kernels, in bytes.

    Kernels come with what `default` measures theirs by. Measures few: stops at kernels whose buffers together are no larger
    than the best so far.
    """
    most = 0
    for bound, known in sorted(((_at_most(kernel), known) for kernel, known in kernels), key=lambda each: -each[0]):
        if bound <= most:
            break
        most = max(most, default(known))
    return most


def _at_most(kernel: PrimFunc) -> int:
    return sys.maxsize if is_scheduled(kernel) else held_bytes(kernel)
