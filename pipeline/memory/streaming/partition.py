"""Partition the steps into streaming regions, so that the peak of bytes alive is least.

A partition is a path through the steps in their order. Each edge is a single step, or several that run as one (or one
by rows, with its result in place), and costs the bytes alive meanwhile. The path with the cheapest costliest edge is found by halving the bytes allowed, as in
msf-CNN (Huang, Zhang et al., 2024, "patch-based fusion as a min-max path"). Of the paths within them, the one that
joins least is taken.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from ...program import Program, Splits
from ..liveness import ALIGNMENT
from .group_rows import coarser
from .merge_region import estimate_region
from .partitioner import Partition, Partitioner, StreamedSteps
from .region import region
from .region_forms import KnownForms

#: part of the bytes in question allowed until there is a path: fewer end it soon, more let many regions be measured
FIRST = 8


def apply_partition(program: Program, splits: Mapping[str, Splits], regions: Sequence[StreamedSteps]) -> Program:
    """Replace the steps of each region by one.

    The last region goes first, so that the step numbers of the others stay.
    """
    for each in sorted(regions, key=lambda each: -each.first):
        found = region(program, splits, each.first, each.last, each.axis, each.group, each.in_place)
        assert found is not None
        program, _ = estimate_region(program, found)
    return program


def best_partition(
    program: Program, splits: Mapping[str, Splits], alignment: int = ALIGNMENT, known: KnownForms | None = None
) -> Partition:
    """Find the partition with the lowest peak; `splits` are those of the program's kernels.

    `program` keeps its order. `known` are regions measured before, for this alignment.
    """
    found = partition_within(math.inf, program, splits, alignment, known)
    assert found is not None
    return found


def partition_within(
    most: float,
    program: Program,
    splits: Mapping[str, Splits],
    alignment: int = ALIGNMENT,
    known: KnownForms | None = None,
    growing: bool = False,
) -> Partition | None:
    """Find the `best_partition`; None if its peak is above `most` bytes, which takes a fraction of the time.

    With `growing`, results may grow over operands of other sizes; `known` are regions of the same kind.
    """
    paths = Partitioner(program, splits, alignment, known, growing)
    # the path does not depend on the bytes allowed first: any that allow no lower peak lead to the same one
    found = paths.within(int(min(most, max(paths.alone, default=0))))
    if not found.complete:
        return None
    low: float = paths.unavoidable
    parts = FIRST
    while low < found.nbytes:
        path = paths.within(int(low + (found.nbytes - low) / parts))
        if path.complete:
            found, parts = path, 2
        else:
            low = paths.beyond
    return coarser(paths, found)
