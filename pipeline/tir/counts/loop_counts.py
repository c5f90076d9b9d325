"""Count the executions of accesses and sums in loops, hoisted and vectorized as by LLVM.

Strides are elements per iteration of each loop, outermost first; None where an access moves by no constant.
`vectors` holds each loop's extent, in vectors for the vectorized one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tvm.ir import Expr, Var
from tvm.tirx import IntImm

from ...targets import Machine
from ..rolled_loops import MOST_PLACES

SERIAL, PARALLEL, VECTORIZED, UNROLLED = range(4)
#: an unrolled loop with a branch in each step, which only the call of a kernel decides: its steps share no loads
BRANCHED = 4
#: instructions of the end of an iteration: increment and branch, half of them unrolled away
_CONTROL = 1
#: largest stride at which LLVM loads whole vectors and shuffles them; beyond, it loads element by element
_INTERLEAVED = 4
_SHUFFLED = range(1, _INTERLEAVED + 1)


def extent_of(extent: Expr) -> int:
    """Return a constant extent; 1 where data decide."""
    return int(extent) if isinstance(extent, IntImm) else 1


@dataclass(frozen=True)
class CountedLoop:
    """Loop of constant extent."""

    var: Var
    extent: int
    kind: int


def vectorized_by_llvm(
    loops: tuple[CountedLoop, ...], target: Sequence[int | None], sources: Sequence[Sequence[int | None]], lanes: int
) -> tuple[CountedLoop, ...]:
    """Mark the innermost loop as vectorized if LLVM does so: all contiguous, no sum; or unrolled, with contiguous results."""
    if lanes == 1 or any(loop.kind == VECTORIZED for loop in loops):
        return loops
    inner = max((number for number, loop in enumerate(loops) if loop.extent > 1), default=None)
    if inner is None or loops[inner].extent < lanes or target[inner] != 1:
        return loops
    if loops[inner].kind != UNROLLED and any(moves[inner] not in (0, *_SHUFFLED) for moves in sources):
        return loops
    return (*loops[:inner], CountedLoop(loops[inner].var, loops[inner].extent, VECTORIZED), *loops[inner + 1 :])


def vectors_of(loops: Sequence[CountedLoop], lanes: int, by_llvm: bool) -> list[int]:
    """Count the iterations of each loop, in vectors for the vectorized one; LLVM leaves the rest to single elements."""
    rest = (lambda extent: extent % lanes) if by_llvm else (lambda extent: min(1, extent % lanes))
    return [loop.extent // lanes + rest(loop.extent) if loop.kind == VECTORIZED else loop.extent for loop in loops]


def executions(loops: Sequence[CountedLoop], machine: Machine, vectors: Sequence[int] | None = None) -> float:
    """Count the iterations of all loops; parallel ones are shared by the machine's threads."""
    counts = [loop.extent for loop in loops] if vectors is None else vectors
    total = 1.0
    for loop, count in zip(loops, counts):
        total *= math.ceil(count / machine.threads) if loop.kind == PARALLEL else count
    return total


def accesses(loops: Sequence[CountedLoop], vectors: Sequence[int], moves: Sequence[int | None]) -> float:
    """Count the instructions of an access: hoisted out of inner loops that do not move it."""
    total, hoisted = 1.0, True
    for loop, count, stride in reversed(list(zip(loops, vectors, moves))):
        if loop.kind == VECTORIZED:
            if stride == 0:
                continue
            shuffled = loop.extent if stride is None or stride not in _SHUFFLED else count * stride
            total *= min(shuffled, loop.extent)
        elif stride != 0 or not hoisted or loop.kind == BRANCHED:
            total *= loop.extent
            hoisted = hoisted and loop.kind in (UNROLLED, BRANCHED)
    return total


def unrolled_by_llvm(loops: Sequence[CountedLoop], moves: Sequence[int]) -> tuple[CountedLoop, ...]:
    """Mark the innermost serial loop as unrolled, if LLVM unrolls it despite the values that `moves` changes: its steps' values are hoisted."""
    inner = max((number for number, loop in enumerate(loops) if loop.kind == SERIAL and loop.extent > 1), default=None)
    if inner is None:
        return tuple(loops)
    if math.prod(loop.extent for loop, move in zip(loops[inner:], moves[inner:]) if move) > MOST_PLACES:
        return tuple(loops)
    return (*loops[:inner], replace(loops[inner], kind=UNROLLED), *loops[inner + 1 :])


def branches(loops: Sequence[CountedLoop], vectors: Sequence[int]) -> float:
    """Count the branches of the innermost branched loop."""
    last = max((number for number, loop in enumerate(loops) if loop.kind == BRANCHED), default=None)
    return 0.0 if last is None else float(math.prod(vectors[: last + 1]))


def loop_ends(loops: Sequence[CountedLoop], vectors: Sequence[int]) -> float:
    """Count the instructions that end the iterations of the innermost loop; outer ones are few compared with them."""
    found, total = 0.0, 1.0
    for loop, count in zip(loops, vectors):
        if loop.extent > 1 and loop.kind in (SERIAL, PARALLEL):
            total *= count
            found = _CONTROL * total
    return found


def independent_sums(loops: Sequence[CountedLoop], vectors: Sequence[int], moves: Sequence[int | None]) -> float:
    """Count the independent sums of one iteration of the innermost serial loop."""
    total = 1.0
    for loop, count, stride in reversed(list(zip(loops, vectors, moves))):
        if loop.extent == 1:
            continue
        if loop.kind not in (VECTORIZED, UNROLLED, BRANCHED):
            return total if stride == 0 else total * loop.extent
        total *= count if stride != 0 else 1
    return total


def dependent_steps(loops: Sequence[CountedLoop], moves: Sequence[int | None]) -> int:
    """Count the dependent steps of one sum: iterations of inner serial loops that do not move the accumulator."""
    total = 1
    for loop, stride in reversed(list(zip(loops, moves))):
        if loop.extent > 1 and loop.kind not in (VECTORIZED, UNROLLED, BRANCHED):
            if stride != 0:
                break
            total *= loop.extent
    return total
