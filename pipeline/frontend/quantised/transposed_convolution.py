"""Compute a transposed convolution of integers as a convolution: each phase of a stride is a filter of its own.

    result[q · stride + r] = Σ x[q + i] · w[k],  k = the tap of phase r that meets x[q + i]

The sums are the same and each is rounded once. Phases lie before the channels of a group, so that runs of channels stay
whole where they lie last (Shi et al., "Is the deconvolution layer the same as a convolutional layer?", 2016).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from ..canonical.node_builder import NodeBuilder, attributes_of

if TYPE_CHECKING:
    import onnx


@dataclass(frozen=True)
class Axis:
    """Phases of one dimension: the first `crop` results of `count` windows over `taps` inputs are none of the result's."""

    kernel: int
    stride: int
    pad: int
    size: int
    result: int
    crop: int

    def tap(self, phase: int, place: int) -> int | None:
        """Return the tap by which a phase reads the input at a place of its window; None for none."""
        first, rest = divmod(phase - self.crop + self.pad, self.stride)
        tap = rest + self.stride * (first - self.low - place)
        return tap if 0 <= tap < self.kernel else None

    @property
    def low(self) -> int:
        """Return the distance of a window's first input from the window's number."""
        return min(first - (self.kernel - 1 - rest) // self.stride for first, rest in self._phases())

    @property
    def taps(self) -> int:
        return max(first for first, _ in self._phases()) - self.low + 1

    @property
    def count(self) -> int:
        """Count the windows; no input is cut off."""
        return max(-(-(self.result + self.crop) // self.stride), self.size - self.low - self.taps + 1)

    @property
    def pads(self) -> tuple[int, int]:
        return -self.low, self.count + self.low + self.taps - 1 - self.size

    def _phases(self) -> Iterator[tuple[int, int]]:
        """Yield the first input and the first tap of each phase that has taps."""
        each = (divmod(phase - self.crop + self.pad, self.stride) for phase in range(self.stride))
        return ((first, rest) for first, rest in each if rest < self.kernel)


@dataclass(frozen=True)
class Phases:
    """Convolution that a transposed one becomes: groups, and a form for each dimension of space."""

    groups: int
    axes: tuple[Axis, ...]

    @property
    def number(self) -> int:
        """Count the phases, one for each place of a stride."""
        return math.prod(axis.stride for axis in self.axes)

    @property
    def cropped(self) -> bool:
        """Return whether windows give more than the result's elements."""
        return any(axis.crop or axis.count * axis.stride > axis.result for axis in self.axes)

    def filters(self, weights: np.ndarray, zeros: Sequence[int]) -> np.ndarray:
        """Arrange weights (inputs, channels of a group, …) as filters; taps that a phase lacks are zero points."""
        inputs, channels = weights.shape[:2]
        grouped = weights.reshape(self.groups, inputs // self.groups, *weights.shape[1:]).swapaxes(1, 2)
        taps = [axis.taps for axis in self.axes]
        made = np.empty((self.groups, self.number, channels, inputs // self.groups, *taps), weights.dtype)
        made[...] = np.asarray(zeros, weights.dtype).reshape(-1, *[1] * (1 + len(taps)))
        for number, phase in enumerate(product(*(range(axis.stride) for axis in self.axes))):
            for place in product(*map(range, taps)):
                read = [axis.tap(r, i) for axis, r, i in zip(self.axes, phase, place, strict=True)]
                if None not in read:
                    made[(slice(None), number, ..., *place)] = grouped[(..., *read)]
        return made.reshape(-1, *made.shape[3:])

    def per_filter(self, values: np.ndarray) -> np.ndarray:
        """Repeat numbers of each channel for its filters."""
        grouped = values.reshape(self.groups, 1, -1)
        return np.broadcast_to(grouped, (self.groups, self.number, grouped.shape[-1])).reshape(-1)

    def attributes(self) -> dict[str, object]:
        """Return the attributes of the convolution."""
        before, after = zip(*(axis.pads for axis in self.axes), strict=True)
        return {"group": self.groups, "kernel_shape": [axis.taps for axis in self.axes], "pads": [*before, *after]}

    def interleave(self, value: str, batch: int, channels: int, build: NodeBuilder, result: str) -> str:
        """Put the phases of the convolution's result side by side."""
        strides, counts = [axis.stride for axis in self.axes], [axis.count for axis in self.axes]
        if self.number > 1:
            rank, inner = len(self.axes), channels // self.groups
            split = build.node("Reshape", value, build.integers(batch, self.groups, *strides, inner, *counts))
            order = [0, 1, 2 + rank, *(place for axis in range(rank) for place in (3 + rank + axis, 2 + axis))]
            turned = build.node("Transpose", split, perm=order)
            whole = [count * stride for count, stride in zip(counts, strides, strict=True)]
            value = build.node(
                "Reshape", turned, build.integers(batch, channels, *whole), result="" if self.cropped else result
            )
        if not self.cropped:
            return value
        starts = build.integers(*(axis.crop for axis in self.axes))
        ends = build.integers(*(axis.crop + axis.result for axis in self.axes))
        return build.node("Slice", value, starts, ends, build.integers(*range(2, 2 + len(self.axes))), result=result)


def phases_of(
    node: onnx.NodeProto, of_x: tuple[int, ...], of_w: tuple[int, ...], of_y: tuple[int, ...]
) -> Phases | None:
    """Return the convolution for a ConvTranspose node; None for dilations, and for paddings that are not given."""
    attributes = attributes_of(node)
    rank = len(of_x) - 2
    dilated = any(each != 1 for each in attributes.get("dilations", ()))
    if dilated or attributes.get("auto_pad", "NOTSET") != "NOTSET" or attributes.get("output_shape"):
        return None
    strides, pads = attributes.get("strides", [1] * rank), attributes.get("pads", [0] * 2 * rank)
    axes = []
    for kernel, stride, pad, size, result in zip(of_w[2:], strides, pads[:rank], of_x[2:], of_y[2:], strict=True):
        ways = [Axis(kernel, stride, pad, size, result, crop) for crop in range(stride)]
        axis = min(ways, key=lambda way: way.taps)
        if min(axis.pads) < 0:
            return None
        axes.append(axis)
    return Phases(attributes.get("group", 1), tuple(axes))
