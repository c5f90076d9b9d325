"""Key the form of a program: all that its plans depend on, so no names."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import astuple

from .program import Program
from .row_dependence import Splits


def form_key(program: Program, splits: Mapping[str, Splits] | None = None) -> str:
    """Return 32 digits for a program, and for splits of its kernels: equal programs but for names share a key."""
    steps = [
        (
            each.reads,
            each.writes,
            each.workspaces,
            each.guard,
            *(tuple(map(astuple, kind)) for kind in (each.in_place, each.copies)),
        )
        for each in program.steps
    ]
    keys = splits and [splits[each.kernel].key for each in program.steps]
    tensors = [(each.shape, each.dtype, each.buffer, each.weight, each.offset) for each in program.tensors]
    sizes = [each.nbytes for each in program.buffers], [each.nbytes for each in program.weights]
    ports = [each.tensor for each in program.inputs], [each.tensor for each in program.outputs]
    views = [astuple(each) for each in program.views]
    return hashlib.sha256(repr((steps, keys, tensors, sizes, ports, views)).encode()).hexdigest()[:32]
