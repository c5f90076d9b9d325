"""Memoise results by the structure of a kernel: a search lowers the same kernels many times."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import lru_cache, wraps
from typing import Generic, TypeVar

import tvm_ffi
from tvm.tirx import PrimFunc

_Result = TypeVar("_Result")

#: the hash of a kernel object: the same ones are asked for by every pass, rule and measure
structural_hash: Callable[[PrimFunc], int] = lru_cache(1 << 12)(tvm_ffi.structural_hash)


class ByStructure(Generic[_Result]):
    """Hold results that are not None, keyed by kernel structure and other hashable arguments."""

    def __init__(self) -> None:
        self._known: dict[tuple[Hashable, ...], list[tuple[PrimFunc, _Result]]] = {}

    def get(self, kernel: PrimFunc, *others: Hashable) -> _Result | None:
        alike = self._known.get((structural_hash(kernel), *others), ())
        return next(
            (result for original, result in alike if original.same_as(kernel) or tvm_ffi.structural_equal(original, kernel)),
            None,
        )

    def put(self, result: _Result, kernel: PrimFunc, *others: Hashable) -> None:
        self._known.setdefault((structural_hash(kernel), *others), []).append((kernel, result))


def memoise_by_structure(make: Callable[..., _Result]) -> Callable[..., _Result]:
    """Memoise `make`, a function of a kernel and of hashable arguments, for structurally equal kernels."""
    known: ByStructure[tuple[_Result]] = ByStructure()

    @wraps(make)
    def remembered(kernel: PrimFunc, *others: Hashable) -> _Result:
        found = known.get(kernel, *others)
        if found is None:
            found = (make(kernel, *others),)  # a 1-tuple, since a result may be None
            known.put(found, kernel, *others)
        return found[0]

    return remembered
