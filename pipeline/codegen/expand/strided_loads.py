"""Load vectors of every second, third or fourth element as vectors of neighbours, shuffled.

    x[0:32:2]    ─►    x[0:16] and x[15:31], the even lanes of the first and the odd ones of the second

One load of each element, put together lane by lane, takes several times as long. Nothing past the last element is read.
"""

from __future__ import annotations

from collections.abc import Sequence

from tvm.ir import Expr, TensorLoad
from tvm.tirx import IntImm, PrimFunc, Ramp

from ...tir.expressions import map_body
from ...tir.lowering.kernel_target import architecture_of
from ...tir.switches import switchable
from .shuffle import load_lanes, take

#: largest stride: each vector of neighbours takes a load and a shuffle
_MOST = 4
#: lanes of the shortest vectors
_SHORTEST = 4
_DTYPES = ("float32", "int32")


@switchable
def shuffle_strided_loads(kernel: PrimFunc) -> PrimFunc:
    """Return a lowered, vectorised kernel whose vectors of small strides are shuffled from neighbours, on x86-64."""
    if architecture_of(kernel) != "x86_64":
        return kernel
    return map_body(kernel, (TensorLoad, lambda load: _shuffle(load) if _stride(load) else load))


def _stride(load: TensorLoad) -> int:
    """Return the stride of a vector that can be shuffled from neighbours; else 0."""
    at = load.indices[-1] if len(load.indices) == 1 else None
    if not isinstance(at, Ramp) or not isinstance(at.stride, IntImm) or str(load.ty.dtype.with_lanes(1)) not in _DTYPES:
        return 0
    lanes, stride = load.ty.dtype.lanes, int(at.stride)
    return stride if 2 <= stride <= _MOST and lanes >= _SHORTEST and lanes & (lanes - 1) == 0 else 0


def _shuffle(load: TensorLoad) -> Expr:
    at, lanes, stride = load.indices[0], load.ty.dtype.lanes, _stride(load)
    last = (lanes - 1) * stride + 1 - lanes
    starts = [min(lanes * number, last) for number in range(stride)]
    places = [lane * stride for lane in range(lanes)]
    vectors = [load_lanes(load, at.base + start, lanes) for start in starts]
    made: Expr = vectors[0]
    # lanes found so far lie anywhere in the first vector, and in their own places after a shuffle
    held: Sequence[int] = [place if place < lanes else 0 for place in places]
    for before, start, vector in zip(starts, starts[1:], vectors[1:]):
        fresh = [before + lanes <= place < start + lanes for place in places]
        made = take(
            [made, vector], [place - start + lanes if new else own for place, new, own in zip(places, fresh, held)]
        )
        held = range(lanes)
    return made
