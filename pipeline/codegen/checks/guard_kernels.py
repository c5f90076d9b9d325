"""Guard all kernels of a program, each with the known facts of its weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from tvm.ir import Var

from ...targets.target import IndexChecks
from ...tir.index_grid import NoMatch
from ...tir.row_window import tensors_of
from .guard_kernel import Guarded, drop_checks, guard_kernel
from .values import INDEX

if TYPE_CHECKING:
    from ...kernels.lower.lower import Lowered

#: by kernel, the reasons for which it may fail; kernels that may not are left out
Reasons = Mapping[str, tuple[str, ...]]


def guard_kernels(lowered: Lowered, mode: IndexChecks) -> tuple[Lowered, Reasons]:
    """Guard the kernels of a lowered program.

    Raises NotImplementedError for one that cannot be understood: its plan is not built, and another may be.
    """
    ranges = _weight_ranges(lowered)
    kernels, reasons = {}, {}
    for name, kernel in lowered.kernels.items():
        try:
            found = guard_kernel(kernel, mode, _constants(lowered, name, ranges))
        except NoMatch as why:
            if mode != "off":
                raise NotImplementedError(f"the indices of kernel '{name}' cannot be checked: it has {why}") from why
            found = Guarded(drop_checks(kernel), (INDEX,))
        kernels[name] = found.kernel
        if found.reasons:
            reasons[name] = found.reasons
    return replace(lowered, kernels=kernels), reasons


def _weight_ranges(lowered: Lowered) -> list[tuple[int, int] | None]:
    """Return the least and greatest element of each weight of integers; None for others."""
    arrays = [np.asarray(each) for each in lowered.weights]
    return [(int(each.min()), int(each.max())) if each.dtype.kind in "iu" and each.size else None for each in arrays]


def _constants(lowered: Lowered, kernel: str, ranges: list[tuple[int, int] | None]) -> dict[Var, tuple[int, int]]:
    """Return the ranges of a kernel's parameters that are weights wherever it is called."""
    known: dict[int, list[tuple[int, int] | None]] = {}
    for owner, step, _ in lowered.program.calls():
        if step.kernel == kernel:
            for place, tensor in enumerate(step.reads):
                weight = owner.tensors[tensor].weight
                known.setdefault(place, []).append(None if weight is None else ranges[weight])
    params = tensors_of(lowered.kernels[kernel])
    found = {}
    for place, calls in known.items():
        limits = [each for each in calls if each is not None]
        if len(limits) == len(calls):
            found[params[place]] = (min(low for low, _ in limits), max(high for _, high in limits))
    return found
