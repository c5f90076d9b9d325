"""Merge identical kernels: steps whose kernels differ in name only call one of them.

Fusion names kernels by their operators, so repeated blocks of a network, or parts of one, may hold equal kernels of
several names.
"""

from __future__ import annotations

from dataclasses import replace

import tvm_ffi

from ...kernels.lower.lower import Lowered


def merge_identical_kernels(lowered: Lowered) -> Lowered:
    """Keep the first kernel, by name, of those that are structurally equal; names of variables do not count."""
    groups: dict[int, list[str]] = {}
    kept: dict[str, str] = {}
    for name, kernel in sorted(lowered.kernels.items()):
        group = groups.setdefault(tvm_ffi.structural_hash(kernel, map_free_vars=True), [])
        same = (each for each in group if tvm_ffi.structural_equal(lowered.kernels[each], kernel, map_free_vars=True))
        kept[name] = next(same, name)
        if kept[name] == name:
            group.append(name)
    if all(name == each for name, each in kept.items()):
        return lowered
    steps = tuple(replace(step, kernel=kept[step.kernel]) for step in lowered.program.steps)
    kernels = {name: kernel for name, kernel in lowered.kernels.items() if kept[name] == name}
    return replace(lowered, program=replace(lowered.program, steps=steps), kernels=kernels)
