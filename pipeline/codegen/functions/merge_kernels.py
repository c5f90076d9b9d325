"""Merge identical kernels: steps whose kernels differ in name only call one of them.

Fusion names kernels by their operators, so repeated blocks of a network, or parts of one, may hold equal kernels of
several names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import tvm_ffi
from tvm.tirx import PrimFunc

from ...kernels.lower.lower import Lowered


def merge_identical_kernels(lowered: Lowered) -> Lowered:
    """Merge kernels that are structurally equal into the first by name."""
    kept = first_equal(dict(sorted(lowered.kernels.items())))
    if all(name == each for name, each in kept.items()):
        return lowered
    program = lowered.program.with_calls(lambda _, step: replace(step, kernel=kept[step.kernel]))
    kernels = {name: kernel for name, kernel in lowered.kernels.items() if kept[name] == name}
    return replace(lowered, program=program, kernels=kernels)


def first_equal(kernels: Mapping[str, PrimFunc]) -> dict[str, str]:
    """Map each kernel's name to its first structural equal's, maybe its own.

    Names of variables do not count.
    """
    groups: dict[int, list[str]] = {}
    kept: dict[str, str] = {}
    for name, kernel in kernels.items():
        group = groups.setdefault(tvm_ffi.structural_hash(kernel, map_free_vars=True), [])
        same = (each for each in group if tvm_ffi.structural_equal(kernels[each], kernel, map_free_vars=True))
        kept[name] = next(same, name)
        if kept[name] == name:
            group.append(name)
    return kept
