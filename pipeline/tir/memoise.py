"""Memoise results by the structure of a kernel: a search lowers the same kernels many times."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import lru_cache, wraps
from typing import Generic, NamedTuple, TypeVar

import tvm
import tvm_ffi
from tvm.tirx import PrimFunc

from .expressions import dtype_bytes

_Result = TypeVar("_Result")
Tensors = Sequence[tvm.runtime.Tensor]
#: most bytes of folded values kept, with their arguments; and bytes of an entry besides
_MOST, _ENTRY = 2 << 30, 1 << 10

#: the hash of a kernel object: the same ones are asked for by every pass, rule and measure
structural_hash: Callable[[PrimFunc], int] = lru_cache(1 << 12)(tvm_ffi.structural_hash)


class ByStructure(Generic[_Result]):
    """Hold results that are not None, keyed by kernel structure and other hashable arguments."""

    def __init__(self) -> None:
        self._known: dict[tuple[Hashable, ...], list[tuple[PrimFunc, _Result]]] = {}

    def get(self, kernel: PrimFunc, *others: Hashable) -> _Result | None:
        alike = self._known.get((structural_hash(kernel), *others), ())
        return next(
            (
                result
                for original, result in alike
                if original.same_as(kernel) or tvm_ffi.structural_equal(original, kernel)
            ),
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


class _Folded(NamedTuple):
    """Results of a kernel; `nbytes` with its arguments, which a graph may have dropped."""

    kernel: PrimFunc
    results: Tensors
    nbytes: int


class FoldedValues:
    """Hold the results of kernels by their structure and by the tensors read, told apart by identity."""

    def __init__(self, most: int = _MOST) -> None:
        self._known: dict[tuple[int, tuple[tvm.runtime.Tensor, ...]], _Folded] = {}
        self._most, self._nbytes = most, 0

    def get_or_make(self, kernel: PrimFunc, arguments: Tensors, make: Callable[[], Tensors]) -> Tensors:
        """Return the results of `kernel` on `arguments`; `make` computes those that are not kept."""
        key = structural_hash(kernel), tuple(arguments)
        found = self._known.pop(key, None)
        if found is not None:
            self._nbytes -= found.nbytes
        if found is None or not (found.kernel.same_as(kernel) or tvm_ffi.structural_equal(found.kernel, kernel)):
            results = make()
            found = _Folded(kernel, results, _ENTRY + sum(map(_nbytes, (*arguments, *results))))
        self._known[key] = found
        self._nbytes += found.nbytes
        while self._nbytes > self._most:
            self._nbytes -= self._known.pop(next(iter(self._known))).nbytes
        return found.results


def _nbytes(tensor: tvm.runtime.Tensor) -> int:
    nbytes = dtype_bytes(str(tensor.dtype))
    for extent in tensor.shape:
        nbytes *= int(extent)
    return nbytes
