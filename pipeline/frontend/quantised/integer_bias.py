"""Find the int32 bias of an integer layer: whole multiples of x's scale × w's scale.

A quantised bias is taken number by number if its scale is that product up to rounding of the scales, as converters write
it. A float bias is taken if the multiples give it back up to float32's rounding, or up to a small part of a unit of the
result, as ONNX Runtime rounds biases that a quantiser left in floats; any other stays a float addition.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .dataflow import Dataflow
from .quantisation import Quantisation

#: relative rounding of a product of two float32 scales, however it was computed
_SCALE_ROUNDING = 2.0**-20
#: relative rounding of a float32 value that was computed as number × scale
_VALUE_ROUNDING = 2.0**-22
#: part of a unit of the result by which a bias may move it before it is rounded
_OF_UNIT = 1 / 32


def integer_bias(
    name: str,
    axis: int,
    channels: int,
    rank: int,
    scales: tuple[Quantisation, Quantisation, Quantisation],
    graph: Dataflow,
) -> np.ndarray | None:
    """Return the bias `name` as int32, one for each of `channels` of the result's dimension `axis` of `rank`.

    `scales` are those of x, w and y. None if it is not constant, not near enough, or does not fit.
    """
    x, w, y = scales
    step = np.float64(np.float32(x.scale[0])) * np.asarray(w.scale, np.float64)
    source = graph.dequantised(name)
    if source is None:
        value = graph.constant(name)
        if value is None or value.dtype != np.float32 or not np.isfinite(value).all():
            return None
        spread = _per_channel(value.astype(np.float64), axis, channels, rank)
        if spread is None:
            return None
        numbers = np.rint(spread / step)
        allowed = np.maximum(_VALUE_ROUNDING * np.abs(spread), _OF_UNIT * np.float64(y.scale[0]))
        if (np.abs(numbers * step - spread) > allowed).any():
            return None
    else:
        stored = graph.constant(source.name)
        own = source.quantisation
        if stored is None or any(own.zero) or own.dtype != "int32":
            return None
        if len(own.scale) not in (1, channels) or (np.abs(np.asarray(own.scale) / step - 1) > _SCALE_ROUNDING).any():
            return None
        found = _per_channel(stored.astype(np.float64), axis, channels, rank)
        if found is None:
            return None
        numbers = found
    if (np.abs(numbers) >= 1 << 31).any():
        return None
    return np.broadcast_to(numbers, (channels,)).astype(np.int32)


def _per_channel(value: np.ndarray, axis: int, channels: int, rank: int) -> np.ndarray | None:
    """Return the numbers of a tensor that broadcasts along all but the channels; None for another form."""
    if value.ndim > rank:
        return None
    shape: Sequence[int] = (*[1] * (rank - value.ndim), *value.shape)
    if any(size != 1 for place, size in enumerate(shape) if place != axis) or shape[axis] not in (1, channels):
        return None
    return np.broadcast_to(value.reshape(-1), (channels,))
