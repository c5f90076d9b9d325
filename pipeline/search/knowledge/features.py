"""Feature vector of a graph: operator counts, distribution of bytes, peak and floor."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

#: operator kinds by the mapping types of DNNFusion (PLDI 2021), with the heavy ones divided further
KINDS = ("convolution", "matmul", "normalise", "pool", "reduce", "concat", "move", "gather", "element-wise", "other")

#: the numbers of `features`, in their order
FEATURES = (
    "operations", "bytes", "weights", "peak", "floor", "shared",
    *(f"count:{kind}" for kind in KINDS),
    *(f"bytes:{kind}" for kind in KINDS),
    *(f"floor:{kind}" for kind in KINDS),
)  # fmt: skip


@dataclass(frozen=True)
class Operation:
    """Operator of a graph.

    `kind` is of KINDS, `reads` are the numbers of its operands, `nbytes` is the size of its result. Values are
    numbered: first the inputs of the graph, then the result of each operation.

    The others serve `family.family_of`: `operator` is the operator's name without its namespace, `shape` that of its
    (first) result, empty if it is dynamic, `weights` number the constants it reads, `depthwise` tells whether it
    is a convolution of single channels.
    """

    kind: str
    reads: tuple[int, ...]
    nbytes: int
    operator: str = ""
    shape: tuple[int, ...] = ()
    weights: tuple[int, ...] = ()
    depthwise: bool = False


class OperatorGraph(NamedTuple):
    """Operators of a graph in order, without their weights.

    `inputs` are the bytes of its inputs, `outputs` the numbers of the values it returns, `weights` the bytes of its
    constants.
    """

    inputs: Sequence[int]
    operations: Sequence[Operation]
    outputs: Sequence[int]
    weights: int


def features(
    inputs: Sequence[int], operations: Sequence[Operation], outputs: Sequence[int], weights: int
) -> tuple[float, ...]:
    """Compute FEATURES: sizes and counts as log(1 + x), shares of all values' bytes in 0 … 1.

    `inputs` are the bytes of the graph's inputs, `outputs` the numbers of the values it returns, `weights` the bytes
    of its constants. `peak` and `floor` are those of the operations in the order given, without fusion.
    """
    sizes = [*inputs, *(each.nbytes for each in operations)]
    total = max(1, sum(sizes))
    working = [each.nbytes + sum(sizes[value] for value in set(each.reads)) for each in operations]
    floor = max(working, default=0)
    at_floor = operations[working.index(floor)].kind if operations else ""
    readers = [0] * len(sizes)
    for each in operations:
        for value in set(each.reads):
            readers[value] += 1
    shared = sum(size for size, count in zip(sizes, readers, strict=True) if count > 1)
    return (
        *map(_log, (len(operations), sum(sizes), weights, _peak(len(inputs), operations, outputs, sizes), floor)),
        round(shared / total, 3),
        *(_log(sum(each.kind == kind for each in operations)) for kind in KINDS),
        *(round(sum(each.nbytes for each in operations if each.kind == kind) / total, 3) for kind in KINDS),
        *(float(kind == at_floor) for kind in KINDS),
    )


def _peak(inputs: int, operations: Sequence[Operation], outputs: Sequence[int], sizes: Sequence[int]) -> int:
    """Return the peak of bytes alive; inputs are alive from the start, outputs to the end."""
    last = dict.fromkeys(range(len(sizes)), -1)
    for step, each in enumerate(operations):
        last[inputs + step] = step
        for value in each.reads:
            last[value] = step
    last.update(dict.fromkeys(outputs, len(operations)))
    alive = peak = sum(sizes[:inputs])
    dying: dict[int, list[int]] = {}
    for value, step in last.items():
        dying.setdefault(step, []).append(value)
    for step, each in enumerate(operations):
        alive += each.nbytes
        peak = max(peak, alive)
        alive -= sum(sizes[value] for value in dying.get(step, ()))
    return peak


def _log(number: int) -> float:
    return round(math.log1p(number), 3)
