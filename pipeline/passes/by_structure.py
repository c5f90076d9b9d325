"""What is worked out for a kernel, once for each structure: a search lowers the same kernels many times."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import wraps
from typing import TypeVar

import tvm_ffi
from tvm.tirx import PrimFunc

_Result = TypeVar("_Result")


def by_structure(make: Callable[..., _Result]) -> Callable[..., _Result]:
    """`make`, a function of a kernel and of more that is hashable, which remembers what it returned for equal ones."""
    known: dict[tuple[Hashable, ...], list[tuple[PrimFunc, _Result]]] = {}

    @wraps(make)
    def remembered(kernel: PrimFunc, *others: Hashable) -> _Result:
        alike = known.setdefault((tvm_ffi.structural_hash(kernel), *others), [])
        for original, result in alike:
            if tvm_ffi.structural_equal(original, kernel):
                return result
        result = make(kernel, *others)
        alike.append((kernel, result))
        return result

    return remembered
