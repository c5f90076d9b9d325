"""`drop-padding-taps`: drop the taps of a kernel that only ever meet padding, with their weights.

A 3×3 kernel over a 1×1 plane padded by 1 keeps its middle tap: weights and arithmetic ÷ 9. Of the taps that meet data, all
multiples of their greatest common distance stay, so that a gap between them becomes dilation.

Legal for constant weights of a float dtype that no other call reads, every rank, layout, stride, dilation, padding and
number of groups. In a transposed convolution a tap is dropped if all its results are cropped. Kept are as many as the
padding, which cannot be negative, asks for; a convolution of padding alone is left.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..rule import Rule

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from tvm.relax import Expr, Var

    from ..dataflow import Dataflow
    from .geometry import Geometry


@dataclass(frozen=True)
class Taps:
    """Describe the kept taps of one axis, `first`, `first + step` …, with the padding that remains."""

    first: int
    step: int
    count: int
    before: int
    after: int


class DropPaddingTaps(Rule):
    """Shrink kernels to the taps that meet data."""

    name = "drop-padding-taps"
    summary = "drop the taps of a kernel that only ever meet padding, with their weights"

    def replacements(self, graph: Dataflow) -> Mapping[Var, Expr]:
        from .constants import is_constant
        from .geometry import CONVOLUTIONS, TRANSPOSED, Geometry

        found: dict[Var, Expr] = {}
        for var, call in graph.calls(*CONVOLUTIONS, *TRANSPOSED):
            geometry = Geometry.of(call)
            if geometry is None or not is_constant(call.args[1], graph):
                continue
            kept = _taps_to_keep(geometry, *map(graph.static_shape, (*call.args[:2], call)))
            if kept and graph.is_owned(call.args[1]):
                weight = graph.constant(call.args[1])
                if weight is not None:
                    found[var] = _shrunk(call, weight, geometry, kept)
        return found


def _taps_to_keep(geometry: Geometry, data: tuple, weight: tuple, result: tuple) -> list[Taps] | None:
    """Return the taps to keep along each axis; None if these are all."""
    shrink = transposed_taps if geometry.transposed else taps
    kept, sizes = [], []
    for number, (axis, kernel) in enumerate(zip(geometry.data_axes(), geometry.kernel_axes())):
        sizes.append(weight[kernel])
        each = shrink(
            data[axis], weight[kernel], result[axis], geometry.strides[number], geometry.dilation[number],
            geometry.before[number], geometry.after[number],
        )  # fmt: skip
        if each is None:
            return None
        kept.append(each)
    return kept if any(each.count < size for each, size in zip(kept, sizes)) else None


def taps(extent: int, size: int, results: int, stride: int, dilation: int, before: int, after: int) -> Taps | None:
    """Return the taps of one axis that meet data; None if none does.

    Result i reads position i · stride + tap · dilation − before of `extent` elements.
    """
    useful = [tap for tap in range(size) if _meets(before - tap * dilation, stride, results, extent)]
    if not useful:
        return None
    step = math.gcd(*(tap - useful[0] for tap in useful)) or 1
    last = useful[-1]
    while True:
        first = useful[0]
        while before - first * dilation < 0:  # padding cannot be negative: keep taps before the first
            first -= step
        if first < 0:
            return Taps(0, 1, size, before, after)
        count, rest = (last - first) // step + 1, before - first * dilation
        reach = (count - 1) * step * dilation + 1
        behind = max((results - 1) * stride + reach - extent - rest, 0)
        if (extent + rest + behind - reach) // stride + 1 == results:
            return Taps(first, step, count, rest, behind)
        last += step  # nor can it be behind: keep taps after the last
        if last >= size:
            return Taps(0, 1, size, before, after)


def _meets(start: int, stride: int, count: int, extent: int) -> bool:
    """Return whether one of the positions 0, stride … (`count` of them) is in [start, start + extent)."""
    place = max(-(-start // stride), 0)
    return place < count and place * stride < start + extent


def transposed_taps(
    extent: int, size: int, results: int, stride: int, dilation: int, before: int, after: int
) -> Taps | None:
    """Return the taps of one axis whose results are not all cropped; None if all are.

    Element i adds to result i · stride + tap · dilation − before.
    """
    useful = [tap for tap in range(size) if _meets(before - tap * dilation, stride, extent, results)]
    if not useful:
        return None
    first = min(useful[0], before // dilation)
    dropped = min(size - 1 - useful[-1], after // dilation)
    return Taps(first, 1, size - dropped - first, before - first * dilation, after - dropped * dilation)


def _shrunk(call: Expr, weight: np.ndarray, geometry: Geometry, kept: list[Taps]) -> Expr:
    from tvm import relax

    index = [slice(None)] * weight.ndim
    for axis, each in zip(geometry.kernel_axes(), kept):
        index[axis] = slice(each.first, each.first + each.step * each.count, each.step)
    smaller = replace(
        geometry, before=tuple(each.before for each in kept), after=tuple(each.after for each in kept),
        dilation=tuple(own * each.step if each.count > 1 else 1 for own, each in zip(geometry.dilation, kept)),
    )  # fmt: skip
    return smaller.call(call.args[0], relax.const(weight[tuple(index)].copy(), str(weight.dtype)))
