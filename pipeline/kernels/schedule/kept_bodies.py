"""Keep the plans of a loop's bodies with its kernel, for plan.json: the kernel itself shows only places in arrays."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace

from tvm.tirx import PrimFunc

from ...memory.placement.kept_body import BodyArray, KeptBody
from ...support.text_files import decode
from ...tir.arena_workspace import has_workspace_parameter, workspace_places
from ...tir.workspace import until_storage_rewrite

#: kernel attribute: the bodies as JSON, those of loops inside first
_BODIES = "passfit.bodies"


def record_bodies(kernel: PrimFunc, bodies: Sequence[KeptBody]) -> PrimFunc:
    """Record the planned bodies of a loop in its kernel."""
    return kernel.with_attr(_BODIES, json.dumps([asdict(body) for body in bodies]))


def kept_bodies(kernels: Mapping[str, PrimFunc]) -> tuple[KeptBody, ...]:
    """List the planned bodies of scheduled kernels with their places in the workspace, outer ones first."""
    return tuple(body for name, kernel in kernels.items() if kernel.attrs and _BODIES in kernel.attrs for body in _placed(name, kernel))


def _placed(name: str, kernel: PrimFunc) -> Iterator[KeptBody]:
    """Yield the bodies of a kernel, from the outside in."""
    bodies = decode(list[KeptBody], str(kernel.attrs[_BODIES]), name, "")
    places: dict[str, int] = {}
    if has_workspace_parameter(kernel):
        places = {buffer.name: offset for buffer, offset in workspace_places(until_storage_rewrite(kernel)).items()}
    for body in reversed(bodies):
        arrays = tuple(replace(array, offset=places.get(array.name)) for array in body.arrays)
        places |= {name: offset for array in arrays if array.offset is not None for name, offset in _inside(body, array)}
        yield replace(body, kernel=name, arrays=arrays)


def _inside(body: KeptBody, array: BodyArray) -> Iterator[tuple[str, int]]:
    """Yield the names of the buffers in an array, and their offsets in the workspace."""
    for buffer, dtype, offset in zip(body.program.buffers, body.program.dtypes, array.plan.offsets):
        if dtype == array.dtype and buffer.nbytes and array.offset is not None:
            yield buffer.name, array.offset + offset
