"""Turn the steps of a streaming region into a loop of ticks: row by row, with rings of rows between.

    for tick in …:                                each stage in the order of the steps
        k = (tick - offset) / period
        if k is whole and 0 <= k < groups: rows k · group up to (k + 1) · group of its result
    the last tick                                 epilogues of the stages that summed up

Nothing is scheduled here: kernels of rows are, with all others, see `lower/schedule_rows.py`.
"""

from __future__ import annotations

from dataclasses import replace

from ...memory.sharing.overlay import drop_empty_buffers
from ...memory.streaming.merge_region import merge_region
from ...memory.streaming.region import Region
from ..lower.divide_kernels import divide_kernels
from ..lower.lower import Lowered
from .integers_last import region_with_integers_last
from .region_body import RegionBody
from .splittable import checked_region
from .transpose_in_place import turns_of


def stream_region(lowered: Lowered, region: Region) -> Lowered:
    """Replace the steps of `region` by one loop, at the last one's place. Raises PlanError, always a bug."""
    lowered, region = checked_region(*region_with_integers_last(lowered, region))
    body = RegionBody(lowered, region)
    loop = body.loop()
    while any(name.startswith(f"{loop.kernel}_turned") for name in lowered.kernels):
        loop = replace(loop, kernel=f"{loop.kernel}_")  # of a region in another body
    program, loop = merge_region(lowered.program, region, loop)
    turns = turns_of(lowered.program, program, region, loop)
    used = {step.kernel for _, step, _ in program.calls()}
    kernels = {name: function for name, function in (lowered.kernels | body.kernels | turns).items() if name in used}
    rows = {name: each for name, each in (*lowered.rows.items(), *body.rows.items()) if name in used}
    return divide_kernels(
        replace(lowered, program=drop_empty_buffers(program), kernels=dict(sorted(kernels.items())), rows=rows)
    )
