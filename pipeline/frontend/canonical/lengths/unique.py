"""Build Unique by sorting: elements that differ from the one before them begin a group.

x 3 1 3 2    sorted 1 2 3 3 at 1 3 0 2    groups begin at 0 1 2 ─► values 1 2 3, first at 1 3 0, inverse 2 0 2 1, counts 1 1 2
"""

from __future__ import annotations

import numpy as np

from ..node_builder import NodeBuilder
from .choose import Chosen, choose_places, count_chosen


def unique(
    build: NodeBuilder, data: str, count: int, dtype: np.dtype, bound: int, ordered: bool, length: str
) -> list[Chosen]:
    """Build values, first places, inverse and counts of a vector; in order of size if `ordered`, else of their first places.

    `length` is that of the vector, if the data decide it: then what is behind is the largest number.
    """
    from onnx import TensorProto

    whole, behind = np.dtype(np.int64), build.integers(count)
    total = length or behind
    row = build.constant(np.arange(count, dtype=whole))
    values, places = build.many("TopK", [data, behind], 2, axis=0, largest=0, sorted=1)
    last = build.node("Slice", values, build.integers(0), build.integers(count - 1), build.integers(0))
    rest = build.node("Slice", values, build.integers(1), behind, build.integers(0))
    differs = build.node("Not", build.node("Equal", rest, last))
    flags = (
        build.node("Concat", build.constant(np.array([True])), differs, axis=0)
        if count > 1
        else build.constant(np.array([True]))
    )
    if length:
        flags = build.node("And", flags, build.node("Less", row, length))
    starts, found = choose_places(build, flags, count, count)
    one = build.integers(1)
    following = build.node("Concat", build.node("Slice", starts, one, behind, build.integers(0)), behind, axis=0)
    within = build.node("Less", build.node("Add", row, one), found)
    counts = build.node("Sub", build.node("Where", within, following, total), starts)
    group = build.node(
        "Cast",
        build.node("Sub", count_chosen(build, flags, count)[0], build.constant(np.asarray(1, np.int32))),
        to=TensorProto.INT64,
    )
    inverse = build.node("ScatterElements", build.constant(np.zeros(count, whole)), places, group, axis=0)
    results = [build.node("Gather", each, starts, axis=0) for each in (values, places)] + [counts]
    if not ordered:
        first = build.node("Where", build.node("Less", row, found), results[1], behind)
        turned = build.many("TopK", [first, behind], 2, axis=0, largest=0, sorted=1)[1]
        results = [build.node("Gather", each, turned, axis=0) for each in results]
        back = build.node("ScatterElements", build.constant(np.zeros(count, whole)), turned, row, axis=0)
        inverse = build.node("Gather", back, inverse, axis=0)
    if bound < count:
        cut = build.integers(0), build.integers(bound), build.integers(0)
        results, found = (
            [build.node("Slice", each, *cut) for each in results],
            build.node("Min", found, build.integers(bound)),
        )
    kinds = (dtype, whole, whole)
    ones, firsts, sizes = (Chosen(each, 0, found, (bound,), kind, False) for each, kind in zip(results, kinds))
    return [ones, firsts, Chosen(inverse, 0, length, (count,), whole, False), sizes]
