"""Take lanes of vectors, and expand operators into such shuffles."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from tvm import tirx
from tvm.ir import Call, Expr, TensorLoad
from tvm.tirx import FloatImm, IntImm, PrimFunc, Ramp

from ...tir.expressions import map_body


def take(vectors: Sequence[Expr], places: Iterable[int]) -> Expr:
    """Return a vector of the lanes at `places` of all `vectors`, one after the other."""
    chosen = [tirx.const(place, "int32") for place in places]
    times = -(
        -len(chosen) // sum(vector.ty.dtype.lanes for vector in vectors)
    )  # TVM takes no more lanes than it is given
    return tirx.Shuffle(list(vectors) * times, chosen)


def load_lanes(load: TensorLoad, first: Expr, lanes: int) -> TensorLoad:
    """Load so many neighbours from the element `first` on, of the buffer and the row of another load."""
    return tirx.BufferLoad(load.source, [*load.indices[:-1], Ramp(first, tirx.const(1, first.ty.dtype), lanes)])


def constant(expr: Expr) -> Any:
    """Return a number that all lanes of an expression hold; None if it is not known."""
    value = expr.value if isinstance(expr, tirx.Broadcast) else expr
    return value.value if isinstance(value, (FloatImm, IntImm)) else None


def split(vector: Expr, lanes: int) -> list[Expr]:
    """Return a vector as vectors of so many lanes."""
    count = vector.ty.dtype.lanes
    if isinstance(vector, tirx.Broadcast):
        return [tirx.Broadcast(vector.value, lanes)] * (count // lanes)
    return [vector] if count == lanes else [take([vector], range(n, n + lanes)) for n in range(0, count, lanes)]


def concat(vectors: Sequence[Expr], lanes: int) -> Expr:
    """Return the first lanes of vectors, one after the other."""
    return vectors[0] if vectors[0].ty.dtype.lanes == lanes else take(vectors, range(lanes))


def expand_operators(kernel: PrimFunc, writers: Mapping[str, Callable[[Call], Expr]]) -> PrimFunc:
    """Replace the calls of operators by the results of their writers, which are given by name; return the same kernel without any."""

    def expand(call: Call) -> Expr:
        write = writers.get(getattr(call.op, "name", ""))
        return call if write is None else write(call)

    return map_body(kernel, (Call, expand))
