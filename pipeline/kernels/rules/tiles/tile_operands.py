"""Query the operands of a tile: how they move along its lanes, and how their weights lie in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from tvm import sym
from tvm.ir import Expr, TensorLoad, Var
from tvm.tirx import Add, FloorDiv, FloorMod, IntImm

from ....tir.expressions import conjuncts, element_bytes, is_choice, loads, unconverted, uses

#: bytes from line to line of a weight from which on repacking pays: each step leaves the lines that are fetched ahead
_FAR = 256
#: bytes of a page, and bytes of a buffer that come from beyond the next cache
_PAGE, _FARTHER = 4096, 1 << 20
#: elements of a line of the nearest cache; lines of an axis from which on a step to the next one finds nothing fetched ahead
_LINE, _FAR_LINES = 16, 4


def conditions(operand: Expr) -> list[Expr]:
    """Return the conditions without which a factor is 0."""
    factor = unconverted(operand)
    return conjuncts(factor.args[0]) if is_choice(factor) else []


def is_far(operand: Expr, lane: Var) -> bool:
    """Return whether each step through a contiguous weight leaves the lines fetched ahead."""
    if not isinstance(operand, TensorLoad) or not lane.same_as(operand.indices[-1]) or len(operand.indices) < 2:
        return False
    return int(operand.source.ty.shape[-1]) * 4 >= _FAR


def is_ragged(extent: int | None) -> bool:
    """Return whether vectors start anywhere in lines of the cache: those of a long axis that holds no whole lines."""
    return extent is not None and extent % _LINE != 0 and extent > _FAR_LINES * _LINE


def moves_raggedly(operand: Expr, lane: Var) -> bool:
    load = moved_by(operand, lane)
    return load is not None and (not lane.same_as(load.indices[-1]) or int(load.source.ty.shape[-1]) % _LINE != 0)


def slides(operand: Expr, axis: Var) -> bool:
    """Return whether an index is more than the axis alone, as in a sliding window."""
    return any(uses(index, axis) and not axis.same_as(index) for load in loads(operand) for index in load.indices)


def packed_width(operand: Expr, lane: Var) -> int | None:
    """Return the block width along `lane` of an already repacked weight, or None: see Repack."""
    load = moved_by(operand, lane)
    if load is None or len(load.indices) < 2:
        return None
    *others, last = load.indices
    blocks = [index for index in others if isinstance(index, FloorDiv) and _is_shifted(index.a, lane, int(index.b))]
    if len(blocks) != 1 or not isinstance(last, FloorMod) or not _is_shifted(last.a, lane, int(last.b)):
        return None
    if sum(uses(index, lane) for index in others) != 1 or int(blocks[0].b) != int(last.b):
        return None
    return int(last.b)


def repacked_load(operand: Expr, lane: Var, extent: int, repackable: tuple[Var, ...]) -> tuple[TensorLoad, int] | None:
    """Return the repackable weight in `operand`, and the index `lane` is; else None.

    Of a weight read in part, each of its parts has the extent of `lane`: blocks that divide it end where a part does.
    """
    load = moved_by(operand, lane)
    if load is None or not any(load.source.same_as(each) for each in repackable):
        return None
    places = [number for number, index in enumerate(load.indices) if uses(index, lane)]
    if len(places) != 1 or not _is_shifted(load.indices[places[0]], lane, extent):
        return None
    return (load, places[0]) if int(load.source.ty.shape[places[0]]) % extent == 0 else None


def _is_shifted(index: Expr, lane: Var, unit: int) -> bool:
    """Return whether an index is `lane`, or behind it by whole units: a slice of a weight."""
    if isinstance(index, Add) and isinstance(index.b, IntImm) and int(index.b) % unit == 0:
        index = index.a
    return lane.same_as(index)


def moved_by(operand: Expr, lane: Var) -> TensorLoad | None:
    """Return the one load that `lane` moves, perhaps converted to another dtype, or None."""
    moved = [load for load in loads(operand) if uses(load, lane)]
    return moved[0] if len(moved) == 1 else None


def is_apart(operand: Expr, summed: Sequence[Var]) -> bool:
    """Return whether a sum steps from page to page of a large buffer: nothing is fetched ahead."""
    for load in loads(operand):
        shape = [int(extent) for extent in load.source.ty.shape]
        width = element_bytes(load.source)
        far = [
            any(uses(index, var) for var in summed) and prod(shape[n + 1 :]) * width >= _PAGE
            for n, index in enumerate(load.indices)
        ]
        if any(far) and prod(shape) * width > _FARTHER:
            return True
    return False


def moved_bytes(operand: Expr, extents: Mapping[Var, int]) -> int:
    """Count the most bytes that `operand` reads of one buffer over all `extents` of its axes.

    Kernels of rows are scheduled before buffers are cut to their windows: they read a part.
    """
    return max((_read_bytes(load, extents) for load in loads(operand)), default=1)


def _read_bytes(load: TensorLoad, extents: Mapping[Var, int]) -> int:
    shape = [int(extent) for extent in load.source.ty.shape]
    width = element_bytes(load.source)
    return width * prod(min(extent, _span(index, extents) or extent) for index, extent in zip(load.indices, shape))


def _span(index: Expr, extents: Mapping[Var, int]) -> int | None:
    """Return the distance from the least to the greatest value of an index, and 1; None if it is not linear."""
    linear = sym.detect_linear_equation(index, list(extents))
    if not len(linear) or not all(isinstance(each, IntImm) for each in linear[:-1]):
        return None
    return 1 + sum(abs(int(each)) * (extent - 1) for each, extent in zip(linear, extents.values()))
